/* SPDX-License-Identifier: MIT */
/* vocabulary_file.h - reads a vocabulary file into memory. */
#ifndef TOKMAP_VOCABULARY_VOCABULARY_FILE_H
#define TOKMAP_VOCABULARY_VOCABULARY_FILE_H

#include <stdint.h>

#include "tokmap/tokmap.h"

#define VOCABULARY_FILE_MOST ((uint64_t)1 << 30) /* bytes of a file */
/* Opening a vocabulary takes at most VOCABULARY_MEMORY bytes for each byte of its file, and VOCABULARY_MEMORY_FREE
 * more: tables of a fixed size, and hash tables, whose sizes are powers of two. */
#define VOCABULARY_MEMORY 4u
#define VOCABULARY_MEMORY_FREE ((uint64_t)128 << 20)

/* Reads a whole file. Sets *text to its bytes, which the caller frees, and *bytes to their number. The file is read
 * rather than mapped, so that a program that replaces it at the same time cannot cause a signal. Statuses: OK,
 * ERROR_NOT_FOUND, ERROR_UNSUPPORTED (empty, or not a regular file), ERROR_LIMIT (larger than VOCABULARY_FILE_MOST),
 * ERROR_TRUNCATED (the file was emptied before it could be read), ERROR_IO, ERROR_MEMORY. */
enum tokmap_status vocabulary_file_read(const char *path, char **text, uint64_t *bytes, struct tokmap_error *error);

#endif
