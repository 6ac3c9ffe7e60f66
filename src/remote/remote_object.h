/* SPDX-License-Identifier: MIT */
/*
 * remote_object.h - objects, and files of web servers, that are read by ranges of one version.
 *
 * remote_object_find() says which version there is, and remote_object_read() reads ranges of that version only
 * (If-Match). Requests are repeated as remote_client.h says.
 *
 * Statuses of all functions: OK, ERROR_ARGUMENT (the name), ERROR_NOT_FOUND, ERROR_IO, ERROR_UNSUPPORTED (no libcurl),
 * ERROR_INTERRUPTED, ERROR_MEMORY.
 */
#ifndef TOKMAP_REMOTE_REMOTE_OBJECT_H
#define TOKMAP_REMOTE_REMOTE_OBJECT_H

#include "remote_client.h"

struct remote_facts {
    uint64_t bytes;
    char tag[HTTP_TAG_MOST]; /* the ETag with its quotes; "" if the server names none that is strong */
    bool keyed;              /* it is no MD5 */
};

/* Fills *facts. */
enum tokmap_status remote_object_find(struct remote_client *client, const char *name, struct remote_facts *facts,
                                      struct tokmap_error *error);
/* Reads bytes [at, at + count) of the version that *facts says, which has them. Statuses: also ERROR_MISMATCH (there is
 * another version by now). */
enum tokmap_status remote_object_read(struct remote_client *client, const char *name, const struct remote_facts *facts,
                                      uint64_t at, size_t count, void *into, struct tokmap_error *error);
/* Appends all bytes of an object, at most `most`, and fills *facts. Statuses: also ERROR_LIMIT. */
enum tokmap_status remote_object_get(struct remote_client *client, const char *name, size_t most,
                                     struct bytes_buffer *into, struct remote_facts *facts, struct tokmap_error *error);

#endif
