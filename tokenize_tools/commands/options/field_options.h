/* SPDX-License-Identifier: MIT */
/*
 * field_options.h - errors of the rooms below, in the words of the command line.
 *
 * The rooms below the commands do not know the command line. If a message of theirs asks for another setting, it names
 * the field of the options struct, written "options.NAME": "raise options.record_limit, or leave the line out with
 * options.skip". One table here maps each field to the option that sets it, and every command prints errors through
 * this file. So a user of `tokmap pack` reads "raise --max-record, or leave the line out with --on-error skip".
 *
 * A command may lack the option. Advice that the user cannot follow is then left out if it is a clause that begins with
 * ", or": `tokmap encode` prints "raise --max-record". Anywhere else the field stays as it is.
 */
#ifndef TOKMAP_COMMANDS_OPTIONS_FIELD_OPTIONS_H
#define TOKMAP_COMMANDS_OPTIONS_FIELD_OPTIONS_H

#include "cli/cli.h"

struct field_option {
    const char *field;  /* "record_limit" */
    const char *option; /* "max-record"; NULL: no command has an option that sets the field */
    const char *value;  /* for a bool that a choice sets: the value that means true; otherwise NULL */
};

/* Returns the table, for tests. Sets *count to its length. The result is static. */
const struct field_option *field_options(size_t *count);

/* Returns whether the command has an option --NAME. */
bool command_has_option(const struct cli_command *command, const char *name);

/* Replaces the fields in error->message as described above. A message that grows too long is cut at its end. */
void error_name_options(const struct cli_command *command, struct tokmap_error *error);

/* Prints the error, with options instead of fields, as "PROGRAM: ERROR" on stderr. Returns CLI_FAILED. */
int command_failed(const struct cli_command *command, const struct tokmap_error *error);

/* Prints "PROGRAM: skipped: ERROR" in the same way: an input was left out and the command continues. */
void command_skipped(const struct cli_command *command, const struct tokmap_error *why);

#endif
