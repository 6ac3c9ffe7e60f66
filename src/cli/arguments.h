/* SPDX-License-Identifier: MIT */
/* arguments.h - a command's options and operands: parsing and help. option_table.h describes them. */
#ifndef TOKMAP_CLI_ARGUMENTS_H
#define TOKMAP_CLI_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "option_table.h"

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

#endif
