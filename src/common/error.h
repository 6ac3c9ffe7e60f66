/*
 * error.h - how a function of this library fails: fill the caller's error, return the status.
 *
 *     return error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET, "row %" PRIu64 " of %" PRIu64 " ...", ..);
 */
#ifndef TOKMAP_COMMON_ERROR_H
#define TOKMAP_COMMON_ERROR_H

#include <inttypes.h>

#include "tokmap/tokmap.h"

/* Fills *error (if not NULL) and returns status. path may be NULL. The sentence says what is wrong and what to do. */
enum tokmap_status error_set(struct tokmap_error *error, enum tokmap_status status, const char *path, uint64_t offset,
                             const char *format, ...) __attribute__((format(printf, 5, 6), cold));

/* The same for a text file's line (from 1). */
enum tokmap_status error_set_line(struct tokmap_error *error, enum tokmap_status status, const char *path,
                                  uint64_t line, const char *format, ...) __attribute__((format(printf, 5, 6), cold));

/* The same for a failed system call: keeps `system` (an errno), chooses ERROR_NOT_FOUND for ENOENT and ENOTDIR,
 * ERROR_MEMORY for ENOMEM, else ERROR_IO. */
enum tokmap_status error_set_system(struct tokmap_error *error, int system, const char *path, uint64_t offset,
                                    const char *format, ...) __attribute__((format(printf, 5, 6), cold));

/* ERROR_MEMORY with the usual sentence; what: "the ring", "the index of documents". */
enum tokmap_status error_set_memory(struct tokmap_error *error, const char *what, uint64_t bytes)
    __attribute__((cold));

#endif
