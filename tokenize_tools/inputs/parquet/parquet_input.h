/* SPDX-License-Identifier: MIT */
/* parquet_input.h - the bytes of a Parquet file, in any order: of a file of this machine, or of another place. */
#ifndef TOKMAP_PARQUET_PARQUET_INPUT_H
#define TOKMAP_PARQUET_PARQUET_INPUT_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

struct parquet_footer;

/* Functions get `user`; those that are NULL are not called. */
struct parquet_input {
    void *user;
    uint64_t bytes;   /* of the file */
    uint64_t version; /* a number that differs from those of other versions of the file; 0: unknown */
    bool asked;       /* each read may be a request to a server */
    /* Reads `count` bytes, which the file has. Statuses: OK, ERROR_MISMATCH (the file has changed), and others. */
    enum tokmap_status (*read)(void *user, void *into, uint64_t offset, uint64_t count, struct tokmap_error *error);
    /* Checks, after the last row, that the file has not changed. Statuses: OK, ERROR_MISMATCH. */
    enum tokmap_status (*check)(void *user, struct tokmap_error *error);
    /* Learns that the chosen columns of the row groups [first, end) will be read. */
    void (*plan)(void *user, const struct parquet_footer *footer, uint64_t first, uint64_t end);
    void (*close)(void *user);
};

/* Opens a file of this machine. path must stay valid. Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_UNSUPPORTED (not a
 * regular file), ERROR_MEMORY. */
enum tokmap_status parquet_input_open(struct parquet_input *input, const char *path, struct tokmap_error *error);

/* Reads `count` bytes. path: for messages. Statuses: those of read(); ERROR_MISMATCH, if the file ends before them. */
enum tokmap_status parquet_input_read(const struct parquet_input *input, const char *path, void *into, uint64_t offset,
                                      uint64_t count, struct tokmap_error *error);

#endif
