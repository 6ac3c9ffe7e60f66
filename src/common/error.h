/* SPDX-License-Identifier: MIT */
/*
 * error.h - how a function of this library fails: it fills the caller's error and returns the status.
 *
 *     return error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
 *                      "row %" PRIu64 " is requested, but the batch has %" PRIu64 " rows", row, rows);
 *
 * The message says what is wrong and what to do about it, and does not repeat the path, line, offset, or errno, which
 * tokmap_error_print() adds. Arguments of the format may point into *error. `error` may be NULL. Any thread, with an
 * error of its own.
 */
#ifndef TOKMAP_COMMON_ERROR_H
#define TOKMAP_COMMON_ERROR_H

#include <inttypes.h>

#include "tokmap/tokmap.h"

/* Fills *error and returns `status`, which is not OK. path: the file, or NULL. offset: in that file, or
 * TOKMAP_NO_OFFSET. */
enum tokmap_status error_set(struct tokmap_error *error, enum tokmap_status status, const char *path, uint64_t offset,
                             const char *format, ...) __attribute__((format(printf, 5, 6), cold));

/* Does the same for a line of a text file, counted from 1. */
enum tokmap_status error_set_line(struct tokmap_error *error, enum tokmap_status status, const char *path,
                                  uint64_t line, const char *format, ...) __attribute__((format(printf, 5, 6), cold));

/* Does the same for an option or argument that is wrong, and keeps its name in error->field. The message is that name
 * and then what the format makes, such as " is 70; it must be below world, 64". */
enum tokmap_status error_set_field(struct tokmap_error *error, enum tokmap_status status, const char *path,
                                   const char *field, const char *format, ...)
    __attribute__((format(printf, 5, 6), cold));

/* Does the same for a system call that failed with the errno `system`, which becomes part of the error. The status is
 * ERROR_NOT_FOUND for ENOENT and ENOTDIR, ERROR_MEMORY for ENOMEM, and ERROR_IO for all others. What to do about a full
 * disk (ENOSPC, EDQUOT) or a file system without locks (ENOLCK) is added to the message. */
enum tokmap_status error_set_system(struct tokmap_error *error, int system, const char *path, uint64_t offset,
                                    const char *format, ...) __attribute__((format(printf, 5, 6), cold));

/* Keeps an error, of a read that is made by a function whose failures are errnos, and returns a number, for which
 * error_set_system() later sets that error again, as it is. The last ERRORS_KEPT are kept; an older one is EIO. */
int error_keep(const struct tokmap_error *error) __attribute__((cold));
#define ERRORS_KEPT 64
/* Hold what is kept while fork() copies this process, because a child would wait forever for a thread that it lacks. */
void errors_hold(void);
void errors_release(void);

/* Does the same for memory that could not be allocated; returns ERROR_MEMORY. what: "the ring", "the index of
 * documents". bytes: the size that was asked for; 0 or UINT64_MAX if it is not known. */
enum tokmap_status error_set_memory(struct tokmap_error *error, const char *what, uint64_t bytes) __attribute__((cold));

#endif
