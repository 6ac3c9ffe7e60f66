/* SPDX-License-Identifier: MIT */
/*
 * blocks.h - the order of `order blocks W SPAN`: for storage that wants long reads. An epoch of n windows is cut into
 * blocks of W consecutive windows. The blocks are taken in a keyed order, and the windows of each SPAN blocks that
 * follow each other in it are permuted among themselves. So a reader that keeps SPAN blocks at hand reads each block
 * once, as a whole. ORDER.md defines the numbers, which are frozen.
 *
 * With `order even W SPAN`, the blocks of a span take turns instead: each SPAN draws, one after another, show one
 * window of each of its blocks. So of the blocks that are in use, a step has the same number of rows from each, and
 * readers that share the blocks have the same work in every step.
 */
#ifndef TOKMAP_ORDER_BLOCKS_H
#define TOKMAP_ORDER_BLOCKS_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

#define KEY_BLOCKS "blocks" /* number: the epoch; name: the source */
#define KEY_EVEN "even"     /* number: the epoch * 2^32 + the slot, modulo 2^64; name: the source */
#define KEY_SPAN "span"     /* number: the epoch * 2^32 + the span, modulo 2^64; name: the source */

/* The order of one epoch of one source. It is a plain value, but it keeps the permutation of the span used last, so
 * each thread needs a copy of its own. All fields are private. */
struct blocks_order {
    uint64_t windows, width, blocks, per_span;
    uint64_t missing;    /* windows that the last block of the dataset lacks */
    uint64_t short_slot; /* place of that block in the order of blocks; `blocks` if it lacks none */
    uint64_t seed, epoch, name_bytes;
    const char *name;
    bool even;
    struct tokmap_order block_order;
    /* The span at hand. */
    uint64_t span, span_first, span_windows, span_slots;
    struct tokmap_order span_order;
};

/* Prepares the order.
 *   n           windows of the epoch, 1 to 2^63
 *   width       W, windows of a block, at least 1
 *   span        SPAN, blocks whose windows are permuted together, at least 1
 *   even        `order even`; else `order blocks`
 *   name        of the source; it is not copied and must stay valid while *order is used */
void blocks_init(struct blocks_order *order, uint64_t n, uint64_t width, uint64_t span, bool even, uint64_t seed,
                 const char *name, uint64_t name_bytes, uint64_t epoch);

/* Compute the window of draw i of the epoch, and the inverse; i < n. Each takes constant time, and longer if the span
 * differs from that of the call before. */
uint64_t blocks_forward(struct blocks_order *order, uint64_t i);
uint64_t blocks_inverse(struct blocks_order *order, uint64_t window);

/* Returns the slot of the window's block in the order of the epoch's blocks, and in *at the window's number in it. */
uint64_t blocks_slot(const struct blocks_order *order, uint64_t window, uint64_t *at);

#endif
