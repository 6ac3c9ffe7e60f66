/* SPDX-License-Identifier: MIT */
/*
 * gather.h - copies extents of one dataset into rows. Every id is checked on the way, and every failure is a status.
 *
 * An extent is taken modulo the tokens of the dataset and may cross shards. One thread at a time may use a gather; it
 * allocates memory only when it is opened (a shard is mapped when it is first used). A gather does not decide what is
 * in memory: its residency does.
 */
#ifndef TOKMAP_BATCH_GATHER_H
#define TOKMAP_BATCH_GATHER_H

#include <stdbool.h>

#include "copy.h"
#include "dataset/row_extents.h"
#include "residency.h"
#include "tokmap/tokmap.h"
#include "uncounted.h"

struct gather;

struct gather_options {
    bool trust_files;   /* do not compare ids with the vocabulary */
    uint32_t row_width; /* bytes of a token in rows: 0 means the dataset's width; 4 widens tokens of 2 */
    uint32_t pad_id;    /* fills a row after its last extent; it must fit row_width */
    const struct copy_kernels *kernels; /* NULL: the best of this processor */
};

/* Opens a gather of one source of a residency, which must outlive it. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status gather_open(struct gather **gather, struct residency_source *source,
                               const struct gather_options *options, struct tokmap_error *error);
void gather_close(struct gather *gather); /* accepts NULL */

/* Copies `count` extents one after another to row, which has room for row_tokens tokens and may have any alignment, and
 * fills extents of padding, and the rest of the row, with the pad id. The extents have at most row_tokens tokens
 * together. Sets *cold, and never clears it, if some of an extent was not in the page cache, as far as the kernel
 * reports it. After a failure the content of row is undefined.
 * Statuses: OK, ERROR_IO, ERROR_TRUNCATED, ERROR_TIMEOUT, ERROR_TOKEN (an id is not in the vocabulary),
 * ERROR_CORRUPT (a page does not match its hash), ERROR_MEMORY. */
enum tokmap_status gather_row(struct gather *gather, const struct tokmap_extent *extents, uint64_t count,
                              uint64_t row_tokens, void *row, bool *cold, struct tokmap_error *error);

/* Outputs that a row becomes without a copy of it. The functions are those of staging/expand.h, for tokens of the
 * dataset's width. */
struct gather_outputs {
    uint32_t (*pair)(const void *in, uint64_t count, const void *after, void *inputs, void *targets);
    uint32_t (*one)(const void *in, uint64_t count, void *inputs);
    uint64_t seq_len;
    const void *after; /* the tokens of the next row, as gather_prefetch() returns them */
    void *inputs;
    void *targets; /* NULL: not written */
};

/* Writes the outputs of a row straight from the mapping: its tokens are loaded, checked, and stored once. *done tells
 * whether it could: the row must be one extent of one shard, whose pages are all populated. Otherwise nothing is
 * written, and gather_row() is the way. After a failure the outputs are undefined. Statuses: those of gather_row(). */
enum tokmap_status gather_direct(struct gather *gather, const struct tokmap_extent *extents, uint64_t count,
                                 const struct gather_outputs *outputs, bool *done, struct tokmap_error *error);

/* Fills a row that has no extent: row_tokens tokens of `width` bytes, all of them pad_id. */
void gather_padding(uint32_t pad_id, uint32_t width, uint64_t row_tokens, void *row);

/* Returns the tokens of the gather's dataset. */
uint64_t gather_tokens(const struct gather *gather);

/* Returns the masks of the gather's dataset, or NULL if it has none. They belong to the gather. */
struct uncounted *gather_uncounted(const struct gather *gather);

/* Prefetches the first cache lines of an extent, if its pages are populated. Never faults. Returns its tokens in the
 * mapping, of which the caller may prefetch more, or NULL. They must not be loaded, because it is not known whether
 * the file still has them. */
const void *gather_prefetch(struct gather *gather, const struct tokmap_extent *extent);

/* Returns the bytes of tokens copied so far, as they are in the dataset. Any thread. */
uint64_t gather_bytes(const struct gather *gather);

#endif
