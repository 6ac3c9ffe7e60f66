/* SPDX-License-Identifier: MIT */
/*
 * error_options.h - how a command prints errors.
 *
 * Messages of the rooms that only commands use name options as a user types them: "raise --max-record, or leave the
 * line out with --on-error skip". A command may lack the option. Advice that the user cannot follow is then left out if
 * it is a clause that begins with ", or": `tokmap encode` prints "raise --max-record".
 *
 * The library does not know the command line. If an option of a struct of its is wrong, the message begins with the
 * member's name, which error->field has, and it is printed as the command's option of that name: "--rank is 70". A file
 * that exists is to be "replaced", for which users type --force.
 */
#ifndef TOKMAP_COMMANDS_OPTIONS_ERROR_OPTIONS_H
#define TOKMAP_COMMANDS_OPTIONS_ERROR_OPTIONS_H

#include "cli/cli.h"

/* Returns whether the command has an option --NAME. */
bool command_has_option(const struct cli_command *command, const char *name);

/* Changes error->message as described above. A message that grows too long is cut at its end. */
void error_name_options(const struct cli_command *command, struct tokmap_error *error);

/* Prints the error, changed in the same way, as "PROGRAM: ERROR" on stderr. Returns CLI_FAILED. */
int command_failed(const struct cli_command *command, const struct tokmap_error *error);

/* Prints "PROGRAM: skipped: ERROR" in the same way: an input was left out and the command continues. */
void command_skipped(const struct cli_command *command, const struct tokmap_error *why);

#endif
