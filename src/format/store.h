/* SPDX-License-Identifier: MIT */
/*
 * store.h - the tokens of one file, whatever kind of file it is: the .bin of a shard, another project's file, whose
 * tokens begin after a header and may have other sizes, or the .bin.zst of a sealed shard. All rooms reach tokens
 * through a store.
 *
 * The kinds so far are files with consecutive elements, which are a plain .bin (offset 0, elements of the width) and a
 * foreign file, and sealed files, whose elements are those of the .bin but are compressed. The functions below are what
 * a later kind (remote) has to provide. A room that reads many windows (src/batch) may also use the descriptor, offset,
 * and element itself, or the frames of a sealed file (sealed.h).
 *
 * A store is immutable after opening, except that the first view maps the file. Any thread may use it.
 */
#ifndef TOKMAP_FORMAT_STORE_H
#define TOKMAP_FORMAT_STORE_H

#include "element.h"
#include "tokmap/tokmap.h"

struct store {
    char *path; /* owned */
    int fd;     /* -1: not open */
    enum element element;
    uint64_t offset; /* of the first token in the file, in bytes */
    uint64_t tokens; /* in the file */
    uint64_t bytes;  /* the size that the file has, and must keep */
    const struct index
        *sealed;        /* of a sealed file: its index, which has the frames and outlives the store; else NULL */
    const uint8_t *map; /* the mapping of the whole file; accessed atomically, NULL until the first view */
};

/* Opens the file. The caller has filled path (which the store owns from now on, with every status), element, offset,
 * tokens, and bytes, as the index or the header says them, and has checked that offset and tokens fit in the bytes. On
 * failure there is nothing to close but the path: store_close() is allowed. Statuses: OK, ERROR_NOT_FOUND, ERROR_IO,
 * ERROR_FORMAT (it is not a regular file), ERROR_TRUNCATED (its size is another one). */
enum tokmap_status store_open(struct store *store, struct tokmap_error *error);
void store_close(struct store *store);

/* Returns whether tokens of `width` bytes can be used where they are: they are not compressed, they have the element's
 * size, and their address is a multiple of it. */
static inline bool store_has_views(const struct store *store, uint32_t width)
{
    return !store->sealed && width == (uint32_t)1 << element_shift(store->element) && store->offset % width == 0;
}

/* Returns the mapping of the whole file, from its byte 0, which the first call makes; it does not read any page of it.
 * Statuses: OK, ERROR_UNSUPPORTED (tokens of `width` bytes have no views: see store_has_views(), or the file is one
 * that is fetched), ERROR_RANGE (there are no tokens), ERROR_IO, ERROR_MEMORY. */
enum tokmap_status store_map(struct store *store, uint32_t width, const uint8_t **file, struct tokmap_error *error);
/* Maps a file that is fetched, too: os_fetched_set() says how it is loaded from. */
enum tokmap_status store_map_any(struct store *store, uint32_t width, const uint8_t **file, struct tokmap_error *error);

/* Copies tokens [first, first + count) to `into` as ids of `width` bytes, converting them if necessary. Reads with
 * pread and never raises a signal. Of a sealed file, each frame is unpacked and compared with its hash; that takes
 * memory of about 300 KiB during the call, so a caller that reads much uses sealed_read(). Statuses: OK, ERROR_IO,
 * ERROR_TRUNCATED, ERROR_TOKEN (an element that has to be converted is negative or does not fit in 32 bits; the error
 * has its place), ERROR_CORRUPT (a frame does not match its hash), ERROR_MEMORY. */
enum tokmap_status store_read(const struct store *store, uint64_t first, uint64_t count, uint32_t width, void *into,
                              struct tokmap_error *error);

/* Reports the element at byte `at` of the file, which is not an id: it is negative or does not fit in 32 bits. Returns
 * ERROR_TOKEN. */
enum tokmap_status store_bad_element(const char *path, enum element element, const void *value, uint64_t at,
                                     struct tokmap_error *error);

#endif
