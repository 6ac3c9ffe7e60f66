/* SPDX-License-Identifier: MIT */
/*
 * foreign_bytes.h - the bytes of another project's document index: mapped, or read with pread. With pread, a file that
 * is cut while it is in use, or that its storage loses, is a status and never a signal. Nothing that was read is kept,
 * because an index can have gigabytes; the page cache has it.
 */
#ifndef TOKMAP_FORMAT_FOREIGN_FOREIGN_BYTES_H
#define TOKMAP_FORMAT_FOREIGN_FOREIGN_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "tokmap/tokmap.h"

struct foreign_bytes {
    const char *path;   /* owned by the caller */
    const uint8_t *map; /* all bytes; NULL: they are read with pread */
    uint64_t count;
    int fd; /* if they are read with pread */
};

/* Maps the file, if it has bytes; foreign_bytes_unmap() ends that. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status foreign_bytes_map(struct foreign_bytes *bytes, struct tokmap_error *error);
void foreign_bytes_unmap(struct foreign_bytes *bytes);

/* Copies `count` bytes from byte `at` on, which are within the file. Statuses of all loads: OK, ERROR_IO,
 * ERROR_TRUNCATED. */
enum tokmap_status foreign_load(const struct foreign_bytes *bytes, uint64_t at, void *into, size_t count,
                                struct tokmap_error *error);

/* Load the little-endian number at byte `at`, which is within the file. */
enum tokmap_status foreign_load32(const struct foreign_bytes *bytes, uint64_t at, uint32_t *value,
                                  struct tokmap_error *error);
enum tokmap_status foreign_load64(const struct foreign_bytes *bytes, uint64_t at, uint64_t *value,
                                  struct tokmap_error *error);

#endif
