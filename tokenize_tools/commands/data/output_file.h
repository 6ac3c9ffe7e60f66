/*
 * output_file.h - one output file that appears complete or not at all.
 *
 * While it is being written, its name ends in .partial, and the writer holds a lock on it. A partial file that a dead
 * process or another user has left is removed.
 */
#ifndef TOKMAP_COMMANDS_DATA_OUTPUT_FILE_H
#define TOKMAP_COMMANDS_DATA_OUTPUT_FILE_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

struct output_file {
    int fd; /* for writing; -1: not open */
    char *path, *partial;
    bool replace;
};

/* Creates PATH.partial and locks it; its folder is made if it is missing (cli_output_folder()). replace: an existing
 * file PATH is replaced at the end. Only a regular file is. On failure nothing remains. Messages name options.replace.
 * Statuses: OK, ERROR_ARGUMENT (the name is empty or that of a folder), ERROR_EXISTS, ERROR_BUSY, ERROR_NOT_FOUND,
 * ERROR_IO, ERROR_MEMORY. */
enum tokmap_status output_file_open(struct output_file *file, const char *path, bool replace,
                                    struct tokmap_error *error);
/* Synchronizes the file with the disk and gives it its name. On failure it is removed, as by output_file_abort().
 * Statuses: OK, ERROR_EXISTS, ERROR_IO. */
enum tokmap_status output_file_commit(struct output_file *file, struct tokmap_error *error);
/* Removes the partial file. Accepts a struct that is all zero except for fd -1, and one that is closed. */
void output_file_abort(struct output_file *file);

#endif
