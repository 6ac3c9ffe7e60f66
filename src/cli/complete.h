/* SPDX-License-Identifier: MIT */
/*
 * complete.h - what a shell offers when the user presses the Tab key, from the same tables as parsing and help.
 *
 * A shell's script (tokenize_tools/commands/completion/) runs "COMMAND --complete WORD..." with the words that
 * follow the command on the command line, as far as the cursor; the last one is the word to complete and may be empty.
 * The answer is one offer per line: a word, then a tab and its description if it has one. A word that ends in "/" is a
 * folder, which the shell does not end with a blank. These lines ask the shell to offer files itself:
 *
 *   :files    files and folders
 *   :folders  folders
 *
 * A shell that gets no line has nothing to offer.
 */
#ifndef TOKMAP_CLI_COMPLETE_H
#define TOKMAP_CLI_COMPLETE_H

#include "option_table.h"

#define CLI_COMPLETE "--complete" /* the hidden first argument */

/* Prints the offers for the last of `count` words, which is at least 1. */
void cli_complete(const struct cli_command *command, int count, char **words);

/* Prints an offer if it begins with `typed`. `help` may be NULL. */
void cli_offer(const char *typed, const char *word, const char *help);

#endif
