/* SPDX-License-Identifier: MIT */
/*
 * bpe_piece.h - short pieces of a text that are merged several at once (bpe_merge_lanes.h).
 */
#ifndef TOKMAP_BPE_BPE_PIECE_H
#define TOKMAP_BPE_BPE_PIECE_H

#include "bpe_model.h"

#define BPE_LANE_BYTES 62 /* the longest piece that can be merged together with others */
#define BPE_SIZES 3       /* classes of such pieces: up to 16 bytes, up to 32, and longer ones */

/* A piece of 1 to BPE_LANE_BYTES bytes, and its ids. */
struct bpe_piece {
    const uint8_t *bytes;
    uint32_t count;
    uint32_t ids_count; /* filled in */
    uint32_t *ids;      /* filled in; has room for `count` and 16 more */
    uint64_t starts;    /* filled in for pieces of bytes: a bit for each byte with which a token begins */
};

/* Returns the class of a piece of `count` bytes. */
static inline uint32_t bpe_size_class(uint32_t count)
{
    return (count > 16) + (count > 32);
}

/* Merges `count` pieces of at most this size class; faster if the longest come first. Cannot fail. */
typedef void bpe_merge_many_function(const struct bpe_model *model, struct bpe_piece *const *pieces, uint32_t count,
                                     uint32_t size_class);

#endif
