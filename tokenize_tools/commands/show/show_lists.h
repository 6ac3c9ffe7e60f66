/* SPDX-License-Identifier: MIT */
/*
 * show_lists.h - `tokmap show RUN --exposures LIST`: every step and row that shows a document of a list, up to the step
 * from which the run excludes the document; and `tokmap show --dropped`: the documents that `tokmap pack` has dropped.
 */
#ifndef TOKMAP_COMMANDS_SHOW_SHOW_LISTS_H
#define TOKMAP_COMMANDS_SHOW_SHOW_LISTS_H

#include "cli/cli.h"
#include "commands/commands.h"
#include "commands/options/target.h"

struct exposures_arguments {
    const char *list;
    struct cli_range steps; /* that are searched; needed if the run has no end, and does not exclude all documents */
    bool json, quiet;
};

/* Lists the rows of a run, or of a run that is made of a dataset and arguments. Returns the exit status. */
int exposures_show(const struct cli_command *command, const char *name, const struct run_arguments *run,
                   const struct exposures_arguments *given);

/* Prints the list of the dataset `name`, or the list with this file name, as lines for people or as a JSON object a
 * line. quiet: without the totals on standard error. Returns the exit status, after a message if it is a failure. */
int dropped_list_show(const struct cli_command *command, const char *name, bool json, bool quiet);

#endif
