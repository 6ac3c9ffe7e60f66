/* SPDX-License-Identifier: MIT */
/*
 * target.h - what info, show, and audit work on: a dataset, a run file, or a run that is made from a dataset and
 * arguments.
 *
 * cli_names_run() decides whether a name means a run file or a dataset.
 */
#ifndef TOKMAP_COMMANDS_OPTIONS_TARGET_H
#define TOKMAP_COMMANDS_OPTIONS_TARGET_H

#include <stdbool.h>

#include "cli/cli.h"
#include "dataset/dataset.h"
#include "run/run.h"
#include "tokmap/tokmap.h"

/* The arguments of a run that is made from a dataset. Their names are those of the run file's directives. */
struct run_arguments {
    uint64_t seq_len, lookahead, batch, seed, steps, passes;
    int order; /* enum tokmap_order_kind */
    bool seq_len_given, lookahead_given, batch_given, seed_given, ordering_given, steps_given, passes_given;
};
#define RUN_ARGUMENTS_INIT                                                                                             \
    {                                                                                                                  \
        .lookahead = 1, .steps = TOKMAP_FOREVER, .passes = TOKMAP_FOREVER                                              \
    }

/* clang-format off */
/* Rows for a table of options. */
#define RUN_OPTIONS(run)                                                                                               \
    {0, "seq-len", CLI_SIZE, &(run).seq_len, &(run).seq_len_given, "S", "tokens of a row", NULL},                      \
    {0, "lookahead", CLI_NUMBER, &(run).lookahead, &(run).lookahead_given, "L",                                        \
     "tokens of a window after those of the row, for targets (default: 1)", NULL},                                     \
    {0, "batch", CLI_NUMBER, &(run).batch, &(run).batch_given, "G", "rows of a global batch", NULL},                   \
    {0, "seed", CLI_NUMBER, &(run).seed, &(run).seed_given, "SEED", "seed of the order (default: 0)", NULL},           \
    {0, "order", CLI_CHOICE, &(run).order, &(run).ordering_given, "ORDER",                                          \
     "shuffle (default), or sequential, which uses no seed", "shuffle|sequential"}
/* clang-format on */

struct target {
    const char *name;               /* as the user typed it */
    struct tokmap_dataset *dataset; /* open if the target is a dataset */
    struct tokmap_run *run;         /* open if the target is a run, from a file or made from arguments */
    bool is_run_file;
};

/* Opens a run file or a dataset; with make_run, a run of the dataset that the arguments describe. target_close()
 * must follow in any case. Returns -1 to go on, or prints a message and returns the exit status. */
int target_open(struct target *target, const struct cli_command *command, const char *name,
                const struct run_arguments *arguments, bool make_run);
/* Opens a dataset for a command that writes beside its shards, or writes their paths, as tokmap_dataset_open() does
 * without options. Statuses: also ERROR_UNSUPPORTED (it is in object storage, and this machine has only parts of its
 * shards). */
enum tokmap_status local_dataset_open(struct tokmap_dataset **dataset, const char *name, struct tokmap_error *error);
/* Prints the warning of a dataset (struct tokmap_dataset_info), if it has one. target_open() does this by itself. */
void dataset_warn(const char *program, const struct tokmap_dataset *dataset, const char *name);
/* Print the warning of a run (struct tokmap_run_info), if it has one, and those of the datasets of its sources.
 * target_open() does both by itself. */
void run_warn(const char *program, const struct tokmap_run *run, const char *name);
void sources_warn(const char *program, const struct tokmap_run *run, const char *name);
/* Closes what is open; a target that is all zero is accepted. */
void target_close(struct target *target);

/* Returns the dataset of a target; of a run, that of source number `source`. It lives as long as the target. */
const struct tokmap_dataset *target_dataset(const struct target *target, uint64_t source);

/* Writes the 32 hexadecimal digits of an id, or "unknown" if all its bytes are zero, and returns `text`. */
const char *id_hex(const uint8_t id[16], char text[33]);
/* The same, written into memory that lasts until the end of the block around the call. */
#define ID_HEX(id) id_hex((id), (char[33]){0})

#endif
