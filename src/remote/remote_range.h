/* SPDX-License-Identifier: MIT */
/*
 * remote_range.h - a range of bytes of a file of a URL or of an object, into memory.
 *
 * An answer is used only if it has exactly the bytes that were asked for, of a file of the size that is expected.
 * Others are failures that may pass: see remote_client.h. Thread rule: one thread at a time per client.
 */
#ifndef TOKMAP_REMOTE_REMOTE_RANGE_H
#define TOKMAP_REMOTE_REMOTE_RANGE_H

#include "remote_client.h"
#include "remote_version.h"

struct remote_range {
    uint64_t first, count; /* bytes; count: at least 1 */
    uint64_t total;        /* of the file, if it is known; otherwise 0: `count` may then reach past its end */
    uint8_t *into;         /* `count` bytes */
    char *tag; /* HTTP_TAG_MOST bytes: the ETag of the version that is wanted, or "", and then the answer's */
    const struct remote_version *version; /* the version that is wanted of an input, in place of `tag`; or NULL */
    bool known;                           /* the name was right before: a server that cannot be reached is away */
    bool unless;                          /* the version of the tag is not wanted: see *same */
    uint64_t since_ns;                    /* see struct remote_client */
    uint32_t *answered;                   /* set to 1 when an answer begins, atomically; or NULL */
    /* Results. */
    uint64_t got;      /* bytes; fewer than `count` only without a total */
    uint64_t size;     /* of the file */
    bool same;         /* unless: the file has still that version, and nothing was read */
    uint64_t first_ns; /* when the answer began, on the clock of os_clock_ns() */
};

/* Reads a range. Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_MISMATCH (the file was replaced, or has another size
 * than is expected), ERROR_INTERRUPTED, and those of remote_client_name(). */
enum tokmap_status remote_range_read(struct remote_client *client, const char *name, struct remote_range *range,
                                     struct tokmap_error *error);

#endif
