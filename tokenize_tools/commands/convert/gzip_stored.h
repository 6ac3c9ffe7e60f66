/* SPDX-License-Identifier: MIT */
/*
 * gzip_stored.h - gzip files whose data is stored as it is, not compressed: for files that a reader expects to be gzip,
 * written without a library that compresses, so that the bytes are the same whatever a build was made with.
 */
#ifndef TOKMAP_COMMANDS_CONVERT_GZIP_STORED_H
#define TOKMAP_COMMANDS_CONVERT_GZIP_STORED_H

#include "output_group.h"

enum { GZIP_BLOCK = 65535 }; /* most bytes of a stored block */

struct gzip_stored {
    uint32_t crc;
    uint64_t bytes; /* of the data so far */
    size_t used;
    uint8_t *block; /* GZIP_BLOCK bytes, of the caller */
};

/* Begins a file, which is a part of the group, to which nothing was added. block: memory of GZIP_BLOCK bytes, until the
 * end. Statuses of all three: OK, ERROR_IO. */
enum tokmap_status gzip_stored_begin(struct gzip_stored *gzip, uint8_t *block, struct output_group *group,
                                     uint32_t part, struct tokmap_error *error);
enum tokmap_status gzip_stored_add(struct gzip_stored *gzip, const void *bytes, size_t count,
                                   struct output_group *group, uint32_t part, struct tokmap_error *error);
enum tokmap_status gzip_stored_end(struct gzip_stored *gzip, struct output_group *group, uint32_t part,
                                   struct tokmap_error *error);

#endif
