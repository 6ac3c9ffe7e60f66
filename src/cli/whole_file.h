/* SPDX-License-Identifier: MIT */
/* whole_file.h - small files that are read at once, the folder of an output, and what kind of file a name that was
 * typed means. */
#ifndef TOKMAP_CLI_WHOLE_FILE_H
#define TOKMAP_CLI_WHOLE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes_buffer.h"
#include "tokmap/tokmap.h"

/* Appends the bytes of a file to `into`, which the caller frees. most: the largest file that is accepted. Statuses: OK,
 * ERROR_NOT_FOUND, ERROR_RANGE (it is larger), ERROR_IO, ERROR_MEMORY. */
enum tokmap_status cli_file_read(const char *path, size_t most, struct bytes_buffer *into, struct tokmap_error *error);

/* Makes the folder that contains the file `output`, and those that contain it, where they are missing; they stay if the
 * command fails later. A command calls this after its arguments have been checked. Statuses: OK, ERROR_NOT_FOUND (it is
 * the name of something else, or a URL), ERROR_IO, ERROR_MEMORY. */
enum tokmap_status cli_output_folder(const char *output, struct tokmap_error *error);

/* Returns whether `name` names a run file: a regular text file that is not a manifest and has no index beside it. Every
 * other name means a dataset: one that begins with "synthetic:", and one that does not exist. */
bool cli_names_run(const char *name);

/* Reads the beginning of a file. Returns false if it cannot be opened or read; *got is 0 then. */
bool cli_head_read(const char *path, char *head, size_t room, size_t *got);

/* Returns whether the file begins as a manifest does (FORMAT.md, "Names and writing"). Reads a few bytes, and does not
 * wait for the writer of a pipe. A file that cannot be opened or read is not a manifest. */
bool cli_is_manifest(const char *path);

#endif
