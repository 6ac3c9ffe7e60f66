/* vocabulary_file.h - the ground of every vocabulary format: files read whole. */
#ifndef TOKMAP_VOCABULARY_VOCABULARY_FILE_H
#define TOKMAP_VOCABULARY_VOCABULARY_FILE_H

#include <stdint.h>

#include "tokmap/tokmap.h"

#define VOCABULARY_FILE_MOST ((uint64_t)1 << 30)

/* The whole file in memory, to be freed: a file that is replaced meanwhile is no signal then. Statuses: OK,
 * ERROR_NOT_FOUND, ERROR_UNSUPPORTED (empty, no file, or over VOCABULARY_FILE_MOST), ERROR_TRUNCATED, ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status vocabulary_file_read(const char *path, char **text, uint64_t *bytes, struct tokmap_error *error);

#endif
