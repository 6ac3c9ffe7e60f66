/* SPDX-License-Identifier: MIT */
/* arguments.h - a command's options and operands: parsing, help, errors. option_table.h describes
 * them. */
#ifndef TOKMAP_CLI_ARGUMENTS_H
#define TOKMAP_CLI_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "option_table.h"
#include "tokmap/error.h"

/* Parses argv[1 .. argc): stores the values of options and puts the operands, in the order of argv, into operands[],
 * which has room for argc of them. "--" ends the options; "-" is an operand. If an option is repeated, the last one
 * counts; CLI_LIST keeps all. --help prints the help on standard output, --help-all the help with all options, and
 * --version the version. Refuses to go on if the environment variable TOKMAP_CPU has a value that cpu.h does not list.
 * Returns -1 if the command is to go on; otherwise its exit status, after a message where one is due. */
int cli_parse(const struct cli_command *command, int argc, char **argv, const char **operands, size_t *operand_count);

/* Runs a command, as its main function. Parses argv as cli_parse() does and, if the command is to go on, calls body()
 * and returns its result, which is the exit status. operands[] has room for one entry more than `count`, so that a body
 * whose operands default to "-" can store it there. */
int cli_run(const struct cli_command *command, int argc, char **argv,
            int (*body)(const struct cli_command *command, const char **operands, size_t count, void *user),
            void *user);

/* Prints "PROGRAM: " and the message on standard error, then "Try 'PROGRAM --help'."; returns CLI_MISUSED. */
int cli_misused(const struct cli_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Says how a value is written if an option of the command line takes one only after an equals sign and had none, so
 * that `operand`, which names no file, may be its value: "--seal 9". */
void cli_maybe_hint(const struct cli_command *command, const char *operand);

/* For "did you mean": the word that is nearest to the one that was typed, or NULL if none of them is near. Words are
 * near if they differ in up to 2 bytes (1 if the typed word has fewer than 4), or if a word begins with the typed one.
 */
const char *cli_nearest(const char *typed, const char *const *words, size_t count);

/* ---- errors ---- */

/*
 * Messages of the rooms that only commands use name options as a user types them: "raise --max-record, or leave the
 * line out with --on-error skip". A command may lack the option. Advice that the user cannot follow is then left out if
 * it is a clause that begins with ", or": `tokmap encode` prints "raise --max-record".
 *
 * The library does not know the command line. If an option of a struct of its is wrong, the message begins with the
 * member's name, which error->field has, and it is printed as the command's option of that name: "--rank is 70". A file
 * that exists is to be "replaced", for which users type --force.
 */

/* Returns whether the command has an option --NAME. */
bool command_has_option(const struct cli_command *command, const char *name);

/* Changes error->message as described above. A message that grows too long is cut at its end. */
void error_name_options(const struct cli_command *command, struct tokmap_error *error);

/* Prints the error, changed in the same way, as "PROGRAM: ERROR" on stderr. Returns CLI_FAILED. */
int command_failed(const struct cli_command *command, const struct tokmap_error *error);

/* Prints "PROGRAM: skipped: ERROR" in the same way: an input was left out and the command continues. */
void command_skipped(const struct cli_command *command, const struct tokmap_error *why);

#endif
