/* output_arguments.h - the option -o PREFIX of the commands that write several files whose names begin alike. */
#ifndef TOKMAP_COMMANDS_OPTIONS_OUTPUT_ARGUMENTS_H
#define TOKMAP_COMMANDS_OPTIONS_OUTPUT_ARGUMENTS_H

#include "cli/cli.h"

/* Makes a prefix from what the user typed. The ending of one of the files is dropped, as it is where datasets are read:
 * `-o data/web.bin` and `-o data/web.tmx` mean data/web. endings: those of the files that the command writes, without
 * their dots, and NULL at the end. On success *prefix is memory that the caller frees. Returns 0, or prints a message
 * and returns the exit status. */
int output_prefix_make(const struct cli_command *command, const char *typed, const char *const *endings, char **prefix);

/* Prepares the place of the output before any input is read, so that the message is about the folder and not about a
 * file that cannot be created in it: the folder is made if it is missing (cli_output_folder()), and PREFIX itself must
 * not be a folder, nor, unless the output is a shard set, a manifest, because a name that is read later could then mean
 * either. Statuses: those of cli_output_folder(), ERROR_EXISTS. */
enum tokmap_status output_place_check(const char *prefix, bool set, struct tokmap_error *error);

#endif
