/* SPDX-License-Identifier: MIT */
/*
 * output_file.h - one output file that appears complete or not at all; the name of an output of several; manifests.
 *
 * While it is being written, its name ends in .partial, and the writer holds a lock on it. A partial file that a dead
 * process or another user has left is removed.
 */
#ifndef TOKMAP_COMMANDS_DATA_OUTPUT_FILE_H
#define TOKMAP_COMMANDS_DATA_OUTPUT_FILE_H

#include <stdbool.h>

#include "cli/cli.h"
#include "platform/os.h"

struct output_file {
    int fd; /* for writing; -1: not open */
    char *path, *partial;
    bool replace;
    bool made; /* the partial file is ours to remove */
};

/* Refuses to replace what is not a file, or, without `replace`, anything. Statuses: OK, ERROR_EXISTS. */
enum tokmap_status output_file_check(const char *path, bool replace, struct tokmap_error *error);
/* Creates PATH.partial and locks it; its folder is made if it is missing (cli_output_folder()). replace: an existing
 * file PATH is replaced at the end. Only a regular file is. On failure nothing remains. Messages name --force.
 * Statuses: OK, ERROR_ARGUMENT (the name is empty or that of a folder), ERROR_EXISTS, ERROR_BUSY, ERROR_NOT_FOUND,
 * ERROR_IO, ERROR_MEMORY. */
enum tokmap_status output_file_open(struct output_file *file, const char *path, bool replace,
                                    struct tokmap_error *error);
/* Synchronizes the file with the disk and gives it its name. On failure it is removed, as by output_file_abort().
 * Statuses: OK, ERROR_EXISTS, ERROR_IO. */
enum tokmap_status output_file_commit(struct output_file *file, struct tokmap_error *error);
/* Removes the partial file. Accepts a struct that is all zero except for fd -1, and one that is closed. */
void output_file_abort(struct output_file *file);

/* Returns whether a path is that of a file, whatever its name there is. */
bool output_is_file(const char *path, const struct os_stat *file);

/* ---- the name of an output ---- */

/* The option -o PREFIX of the commands that write several files whose names begin alike. */

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

/* ---- manifests ---- */

/*
 * Writes the manifest of a dataset again when its shards have changed.
 *
 * A manifest that states the sizes of its shards is wrong once one of them is replaced. A command that replaces shards
 * therefore takes the sizes out of the manifest before the first one, and states the new ones after the last one. If it
 * is interrupted in between, the dataset is still one: its shards are opened with it.
 */

/* Writes the manifest at `path` again, with the same names and comments, and with what the indexes of its shards say.
 * Statuses: OK, ERROR_BUSY, ERROR_NOT_FOUND, ERROR_IO, ERROR_MEMORY, those of opening a manifest and an index. */
enum tokmap_status manifest_file_state(const char *path, struct tokmap_error *error);

/* Writes it with the names alone, if it states more. *stated: it did. A path that is not that of a manifest is left
 * alone. Statuses: the same. */
enum tokmap_status manifest_file_clear(const char *path, bool *stated, struct tokmap_error *error);

#endif
