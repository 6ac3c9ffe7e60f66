/* SPDX-License-Identifier: MIT */
/* dropped_list.h - prints the list of documents that `tokmap pack` has dropped (tokmap show --dropped). */
#ifndef TOKMAP_COMMANDS_SHOW_DROPPED_LIST_H
#define TOKMAP_COMMANDS_SHOW_DROPPED_LIST_H

#include "cli/cli.h"
#include "commands/commands.h"

/* Prints the list of the dataset `name`, or the list with this file name, as lines for people or as a JSON object a
 * line. quiet: without the totals on standard error. Returns the exit status, after a message if it is a failure. */
int dropped_list_show(const struct cli_command *command, const char *name, bool json, bool quiet);

#endif
