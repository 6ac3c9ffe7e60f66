/* SPDX-License-Identifier: MIT */
/*
 * bpe_longs.h - the second cache of a state: pieces that are longer than a key, or that have too many ids for the
 * first.
 *
 * bpe_encode.c explains what the caches are for. A piece has one of four neighboring lines of 64 bytes, which its tag
 * selects. The cache begins with 2 MiB, because most texts need less: 67 MB of source code use 4,000 of its 32,768
 * lines. When a quarter of the lines is used, it grows to 4 MiB and then to 12 MiB. So a short text does not wait until
 * the kernel has cleared memory that it does not need.
 *
 * To grow, lines move within the same memory. The place of a line is its tag times the number of lines, divided by
 * 2^32. So lines are in the order of their tags, in the old places as in the new ones, and none moves down. Moved from
 * the last to the first, no line gets a place whose old line has yet to move. Example with four fours that become
 * eight: the tags 0x30000001 and 0xC0000001 are in fours 0 and 3. The second moves to four 6, and then the first to
 * four 1.
 */
#ifndef TOKMAP_BPE_BPE_LONGS_H
#define TOKMAP_BPE_BPE_LONGS_H

#include "bpe_state.h"

#define BPE_LONG_MOST                                                                                                  \
    2048 /* bytes of a piece that is kept: web pages have lists without spaces, the same on each page */

/* Gives the cache its place in the memory of the caches, which is all zeros. */
void bpe_longs_place(struct bpe_state *state);

/* Returns the line that holds a piece, its own or one of its neighbors, and its ids in the tokens' width; or NULL. The
 * line is valid until a piece is added. */
const struct bpe_long *bpe_long_find(struct bpe_state *state, uint64_t hash, const uint8_t *bytes, size_t count,
                                     const void **ids);

/* Adds a piece that the cache does not hold, unless it is too long. May move all lines, or empty the cache. */
void bpe_long_add(struct bpe_state *state, uint64_t hash, const uint8_t *bytes, size_t count, const uint32_t *ids,
                  size_t id_count);

#endif
