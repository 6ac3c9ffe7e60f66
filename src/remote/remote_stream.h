/* SPDX-License-Identifier: MIT */
/*
 * remote_stream.h - the bytes of a URL in order, whatever happens to the connection.
 *
 * Requests are repeated as remote_client.h says.
 *
 * Reading continues at the first byte that is missing (Range), of the same version of the file only: the server is
 * asked for the ETag that the first answer had (If-Match; If-Unmodified-Since if it has none), and each answer is
 * compared with the first (remote_version.h). So the bytes are those of one version, or there is an error. Example,
 * of a file of 100 bytes:
 *
 *     GET /f                                          -> 200, ETag "a", 100 bytes, of which 60 arrive
 *     GET /f  Range: bytes=60-  If-Match: "a"         -> 206, ETag "a", bytes 60-99/100: the rest
 *                                                     -> 412, or ETag "b": the file has changed, an error
 *                                                     -> 200, ETag "a": all of it again, 60 bytes are passed over
 *
 * Thread rule: one thread at a time per object.
 */
#ifndef TOKMAP_REMOTE_REMOTE_STREAM_H
#define TOKMAP_REMOTE_REMOTE_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "remote_client.h"

struct remote;

/* Creates an object without an open URL. stop and user as for stream_new(). Makes the calls of *watch, which must stay
 * valid; it may be NULL. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status remote_new(struct remote **remote, bool (*stop)(void *user), void *user,
                              const struct remote_watch *watch, struct tokmap_error *error);
void remote_free(struct remote *remote); /* accepts NULL */

/* Opens a name for which remote_kind() is not NONE, and waits for the server's answer. Statuses: OK, ERROR_ARGUMENT,
 * ERROR_NOT_FOUND, ERROR_IO (the server refuses it, or cannot be reached), ERROR_UNSUPPORTED (no libcurl, or the answer
 * has no end that can be recognized), ERROR_INTERRUPTED, ERROR_MEMORY. */
enum tokmap_status remote_open(struct remote *remote, const char *name, struct tokmap_error *error);
void remote_close(struct remote *remote);

/* Returns the name of the open file as it may be shown. Valid until remote_close(). */
const char *remote_name(const struct remote *remote);
/* Returns the size of the open file, or UINT64_MAX if the server has not said it. */
uint64_t remote_bytes(const struct remote *remote);
/* Returns a number that differs from those of other versions of the open file, or 0 if the server has named no
 * version. */
uint64_t remote_version(const struct remote *remote);

/* Reads up to `capacity` bytes (> 0) and sets *got; *got is 0 only at the end. Statuses: those of remote_open(),
 * ERROR_MISMATCH (the file has changed). */
enum tokmap_status remote_read(struct remote *remote, char *into, size_t capacity, size_t *got,
                               struct tokmap_error *error);

/* Asks for the size of a file, once: UINT64_MAX if it is not known. For progress. */
uint64_t remote_size(struct remote *remote, const char *name);

#endif
