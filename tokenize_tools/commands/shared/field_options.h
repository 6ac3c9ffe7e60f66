/*
 * field_options.h - errors of the rooms below, in the words of the command line.
 *
 * The rooms below the commands do not know the command line. Where a message of theirs asks for another setting, it names the
 * field of the options struct, written "options.NAME": "set options.record_limit above 100". One table here maps each field to
 * the option that sets it, and every command prints errors through this file, so that a user reads "set --max-record above
 * 100". A command that does not have the option prints the field as it is.
 */
#ifndef TOKMAP_COMMANDS_SHARED_FIELD_OPTIONS_H
#define TOKMAP_COMMANDS_SHARED_FIELD_OPTIONS_H

#include "cli/cli.h"

struct field_option {
    const char *field;  /* "record_limit" */
    const char *option; /* "max-record" */
    const char *value;  /* the word that stands for true where a bool is set by a choice, or NULL */
};

/* The table, for tests. Sets *count to its length. The result is static. */
const struct field_option *field_options(size_t *count);

/* Replaces each field in error->message by the command's option. A message that grows too long is cut at its end. */
void error_name_options(const struct cli_command *command, struct tokmap_error *error);

/* Prints the error, with options instead of fields, as "PROGRAM: ERROR" on stderr. Returns CLI_FAILED. */
int command_failed(const struct cli_command *command, const struct tokmap_error *error);

/* Prints "PROGRAM: skipped: ERROR" in the same way: an input was left out and the command continues. */
void command_skipped(const struct cli_command *command, const struct tokmap_error *why);

#endif
