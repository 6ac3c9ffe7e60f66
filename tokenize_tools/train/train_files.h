/* SPDX-License-Identifier: MIT */
/*
 * train_files.h - the files of a trained vocabulary, whatever is in them.
 *
 * While a file is being written, its name ends in .partial; PREFIX.partial is the writer's lock. All files get their
 * names as a group (name_files.h), which PREFIX.naming records, in the order in which they are listed: what has their
 * names is removed before, also an old file that the new group does not have. So never is a file of the old group
 * beside one of the new group. The next writer does what a killed one has left of that. If two processes write to the
 * same prefix, the second one fails with ERROR_BUSY.
 */
#ifndef TOKMAP_TRAIN_TRAIN_FILES_H
#define TOKMAP_TRAIN_TRAIN_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/growing.h"
#include "tokmap/tokmap.h"

#define TRAIN_FILES_MOST 4

/* A file of a group: PREFIX and this ending. The last file of a group is always made. */
struct train_file {
    const char *ending;
    bool made;
};

struct train_files;

/* Creates the partial files and locks them. replace: existing files are replaced. count: 1 to TRAIN_FILES_MOST.
 * Statuses: OK, ERROR_ARGUMENT (the prefix has no name), ERROR_EXISTS, ERROR_BUSY, ERROR_NOT_FOUND, ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status train_files_open(struct train_files **files, const char *prefix, const struct train_file *names,
                                    uint32_t count, bool replace, struct tokmap_error *error);

/* Writes the files that are made, synchronizes them with the disk, and renames them. *files is freed in any case. If
 * writing fails, the partial files are removed. contents: one for each name. Statuses: OK, ERROR_EXISTS, ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status train_files_commit(struct train_files *files, const struct growing *contents,
                                      struct tokmap_error *error);
void train_files_abort(struct train_files *files); /* removes the partial files and frees *files; accepts NULL */

/* Returns the path of output number i, from 0, including the partial files; NULL if there are no more. Valid as long as
 * `files`. */
const char *train_files_name(const struct train_files *files, uint32_t i);

#endif
