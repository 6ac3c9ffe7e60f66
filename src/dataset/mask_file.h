/* SPDX-License-Identifier: MIT */
/* mask_file.h - which tokens of one file of tokens count as targets. Any thread may use it. */
#ifndef TOKMAP_DATASET_MASK_FILE_H
#define TOKMAP_DATASET_MASK_FILE_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

struct mask_file {
    int fd;             /* -1: there is no mask */
    char *path;         /* owned */
    uint64_t bytes;     /* the size that the file has, and must keep */
    uint64_t first_bit; /* of token 0 in the file; not if wide */
    bool wide;          /* one byte for each token, which counts if the byte is not 0; otherwise one bit */
};

/* Opens the mask of `tokens` tokens at `path`, which the mask owns from now on, with every status. On failure
 * mask_file_close() is allowed. Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_FORMAT, ERROR_TRUNCATED (the file has
 * another size than the tokens need). */
enum tokmap_status mask_file_open(struct mask_file *mask, char *path, bool wide, uint64_t tokens,
                                  struct tokmap_error *error);
void mask_file_close(struct mask_file *mask);

/* A function that reads a file as os_pread() does, but may also return ETIMEDOUT. */
struct mask_reader {
    int (*read)(void *user, int fd, void *into, uint64_t bytes, uint64_t offset, size_t *got);
    void *user;
};

/* Copies bits [first, first + count) of the mask to bits [at, at + count) of `bits`, whose other bits do not change.
 * reader: NULL for os_pread(). Statuses: OK, ERROR_IO, ERROR_TRUNCATED, ERROR_TIMEOUT (with a reader). */
enum tokmap_status mask_file_read(const struct mask_file *mask, uint64_t first, uint64_t count, uint8_t *bits,
                                  uint64_t at, const struct mask_reader *reader, struct tokmap_error *error);

#endif
