/* SPDX-License-Identifier: MIT */
/* input_warnings.h - warns of inputs that are probably named by mistake: files of records together with files that are
 * read as text, as a folder with a data set and its README has them, and files that are named more than once. Warns
 * also of files in which the separator of documents does not occur, and tells what the servers of URLs make a command
 * do. */
#ifndef TOKMAP_COMMANDS_REPORT_INPUT_WARNINGS_H
#define TOKMAP_COMMANDS_REPORT_INPUT_WARNINGS_H

#include "commands/options/error_options.h"
#include "corpus/corpus_options.h"

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
