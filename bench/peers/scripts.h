/* SPDX-License-Identifier: MIT */
/*
 * scripts.h - runs the scripts of bench/peers/compare, which measure other systems, and reads their lines.
 *
 * bench/peers/compare/report.py documents the lines.
 */
#ifndef TOKMAP_BENCH_PEERS_SCRIPTS_H
#define TOKMAP_BENCH_PEERS_SCRIPTS_H

#include "harness/child.h"

#define SCRIPT_FIELDS 6

/* Writes the folder of the scripts, which contains encode.py and compare: that of --peers-folder, else bench/peers of
 * the source tree in which this program was built, else share/tokmap/peers beside the folder of this program.
 * If there is no such folder, it ends the program with a message that names the option. */
void scripts_folder(struct bench *bench, char path[BENCH_PATH]);

/* Returns whether the word is the name of a table of compare, in whatever folder its scripts are. */
bool scripts_have_table(struct bench *bench, const char *word);

/* Returns whether the command line names a table that reads a text instead of a dataset. */
bool scripts_read_text(const struct bench *bench);

/* One line of a script. fields[0] is its first word; the others, `count` - 1 of them, are never NULL. */
struct script_line {
    char *fields[SCRIPT_FIELDS + 1];
    size_t count;
};

/* Receives a line other than `progress` and `say`, whose number of fields is right. Returns CLI_DONE, or CLI_FAILED
 * after a message. */
typedef int script_line_fn(struct bench *bench, const struct script_line *line);

/* Runs `python3 compare TABLE` with the arguments, and with those that every table has: --work (a new folder in --dir,
 * which is removed with all that is in it), --tokmap, --package, --repeats, --seconds, --seq-len, --rows,
 * --peers, --venv, --offline. Shows its progress and what it says, and calls `line` for all other lines.
 * Returns CLI_DONE, or CLI_FAILED after a message: a line is not of the protocol, or the script fails. */
int scripts_run(struct bench *bench, const char *table, const struct child_arguments *arguments, script_line_fn *line);

#endif
