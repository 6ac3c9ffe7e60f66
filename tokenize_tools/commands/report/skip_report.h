/* SPDX-License-Identifier: MIT */
/*
 * skip_report.h - what a command reports about the files and records that it leaves out (--on-error skip), and
 * warnings about inputs that are probably not what the user means.
 *
 * Each of them is a line on standard error, until they become many: then they are only counted, and the closing report
 * sums them up by reason. --skipped-list FILE lists all of them, as JSONL. --max-skipped limits them.
 *
 * The list is called FILE.partial until the command ends, so that one that is killed leaves no FILE that would keep the
 * same command from running again.
 */
#ifndef TOKMAP_COMMANDS_REPORT_SKIP_REPORT_H
#define TOKMAP_COMMANDS_REPORT_SKIP_REPORT_H

#include "cli/cli.h"
#include "commands/options/corpus_arguments.h"
#include "corpus/corpus_options.h"
#include "encode/ordered_workers.h"
#include "format/index_writer.h"
#include "pack/packing_options.h"

struct skip_report {
    const char *limit_text, *list_path; /* of the options, or NULL */
    struct skip_limit limit;
    bool shared;     /* other processes have the same list, which one of them makes; set before skip_report_open() */
    bool later;      /* the list is made by skip_report_taker(), and items that are added before are not in it */
    bool abandoned;  /* a signal ended the work, and none of it is kept: the list keeps its partial name */
    bool may_choose; /* options leave documents out that are sound; set before skip_report_open() */
    const struct cli_command *command;
    struct cli_progress *progress; /* its line is cleared before a message is printed */
    bool json;                     /* keep the first items for skip_report_to() */
    bool skipping;                 /* items are left out; otherwise the first one ends the work */
    int list;                      /* descriptor of the list, or -1 */
    char *partial;                 /* FILE.partial; NULL without a list, or if it has its name from the beginning */
    bool named;                    /* FILE.partial has become FILE */
    uint64_t list_bytes;           /* that were written to it */
    bool resume;                   /* an old list is continued where skip_report_load() says, or else replaced */
    bool force, joining, joined;   /* of skip_report_taker() */
    int list_failed;               /* errno of the first write that failed */
    uint64_t count, printed;       /* items, and how many of them are a line on standard error */
    uint64_t chosen;               /* items that the options ask for, which are never printed */
    uint64_t of_file;              /* printed lines about the file whose name has this hash */
    uint64_t file_hash;
    struct skip_item *items;
    uint64_t item_count, items_saved;
};

/* clang-format off */
/* Rows for a table of options. */
#define SKIP_OPTIONS(skips)                                                                                            \
    {0, "max-skipped", CLI_TEXT, &(skips).limit_text, NULL, "N|P%",                                                    \
     "with --on-error skip: fail if more than N files and records, or more than P percent of them, are left out",      \
     NULL},                                                                                                            \
    {0, "skipped-list", CLI_TEXT, &(skips).list_path, NULL, "FILE",                                                    \
     "list everything that is left out in FILE, as JSONL", NULL}
/* clang-format on */

/* Checks the options, and creates the list; `force` replaces an existing one. Sets the fields of *skips that are no
 * options; skip_report_close() frees them, also after a failure. Returns 0, or prints a message and returns the exit
 * status. */
int skip_report_open(struct skip_report *skips, const struct cli_command *command,
                     const struct corpus_arguments *corpus, struct cli_progress *progress, bool json, bool force);

/* Pass on what was added since the last call, and take it in another process: see struct pack_options. The process that
 * takes it has opened the report with skips->resume. */
void skip_report_save(struct skip_report *skips, struct state_sink *sink);
enum tokmap_status skip_report_load(struct skip_report *skips, uint32_t kind, const uint8_t *bytes, size_t count,
                                    struct tokmap_error *error);

/* Adds an item that was left out. One thread at a time calls it. */
void skip_report_add(struct skip_report *skips, const struct corpus_issue *issue, const struct tokmap_error *why);

/* Returns what makes the list of work in units, in place of what was added before, and syncs it in the end. Statuses:
 * OK, ERROR_EXISTS and ERROR_IO, which ends the work. */
struct skipped_taker skip_report_taker(struct skip_report *skips);

/* Gives the list its name, before the output gets its own. Statuses: OK, ERROR_EXISTS, ERROR_IO. */
enum tokmap_status skip_report_name(struct skip_report *skips, struct tokmap_error *error);

/* Returns the name that the list has now, until the report is closed or names the list; NULL without a list. */
const char *skip_report_file(const struct skip_report *skips);

/* Prints on standard error how many items had no line of their own, and checks that the list is complete. failed: the
 * work is not done; if it has left nothing out, the list stays as it is. Returns false after a message if the list is
 * not complete. */
bool skip_report_finish(struct skip_report *skips, bool failed);

/* Advises on standard error if most of the input was left out for a reason that an option avoids. */
void skip_report_advise(const struct skip_report *skips, const struct corpus_counts *counts);

/* After the message about `error`, which ended the work: says which options leave a file out, if the file is not text
 * and the user did not name it, but a folder, pattern, or list that contains it. */
void skip_report_hint(const struct skip_report *skips, const struct corpus_counts *counts, const char **operands,
                      size_t operand_count, const struct tokmap_error *error);

/* Adds what was not read and what was left out, by reason: for people nothing if nothing was; in JSON the members
 * "not_read", "left_out", "skipped" (the first 1000 items), and "skipped_items". */
void skip_report_to(const struct skip_report *skips, const struct corpus_counts *counts, struct cli_report *report);

/* Frees everything. If the command has failed and left nothing out, the empty list is removed. A list of work that was
 * abandoned stays FILE.partial, which the same command replaces: FILE would keep it from running again. */
void skip_report_close(struct skip_report *skips, bool failed);

/* ---- warnings about inputs ---- */

/*
 * Warns of inputs that are probably named by mistake: files of records together with files that are
 * read as text, as a folder with a data set and its README has them, and files that are named more than once. Warns
 * also of files in which the separator of documents does not occur, and tells what the servers of URLs make a command
 * do.
 */

/* Warnings that are given once per command, in this order. */
enum input_warning {
    INPUTS_MIXED,
    INPUTS_REPEATED,
    INPUTS_UNDIVIDED,
    INPUTS_OTHER_LINE_ENDS,
    INPUTS_UNVERSIONED,
    INPUT_WARNINGS
};

/* Begins as zeros. */
struct input_warnings {
    const char *program;                      /* set these two before input_warnings_watch() */
    bool saved;                               /* the work is saved, perhaps in the middle of a URL */
    _Atomic(char *) messages[INPUT_WARNINGS]; /* or NULL */
    bool told[INPUT_WARNINGS];
};

/* Asks the reader of the inputs to look. It does not look for mixed folders if the user has chosen the format or the
 * files (--include), or wants another content than text, which text files do not have. */
void input_warnings_watch(struct input_warnings *warnings, struct corpus_options *options);

/* Warns of what was found so far, once per command. progress: what is shown meanwhile. From one thread. */
void input_warnings_tell(struct input_warnings *warnings, struct cli_progress *progress);

void input_warnings_free(struct input_warnings *warnings);

#endif
