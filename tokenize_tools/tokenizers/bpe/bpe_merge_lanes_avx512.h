/* SPDX-License-Identifier: MIT */
/*
 * bpe_merge_lanes_avx512.h - the turns of lanes (bpe_merge_lanes.h) with AVX-512, shared by bpe_merge_vbmi.c and
 * sp_merge_vbmi.c.
 */
#ifndef TOKMAP_BPE_BPE_MERGE_LANES_AVX512_H
#define TOKMAP_BPE_BPE_MERGE_LANES_AVX512_H

#include <assert.h>

#include "bpe_merge_lanes.h"

#if defined(__x86_64__)

/* Returns the key of a pair that begins at `place`: LANE_NO_KEY or more if it does not merge. (A pair of two ends does
 * not occur, so an empty slot matches no pair.) tied: ranks from this one on count as equal, so that they merge from
 * left to right; the real rank is looked up when such a key is chosen. BPE_MERGES: no ranks are tied. */
LANE_INLINE uint32_t lane_key(const struct bpe_model *model, uint64_t pair, const uint64_t *line, uint32_t place,
                              uint32_t tied)
{
    const __m512i entries = _mm512_load_si512(line);
    const __mmask8 found = _mm512_cmpeq_epi64_mask(_mm512_srli_epi64(entries, 22), _mm512_set1_epi64((long long)pair));
    const __m512i entry = _mm512_mask_compress_epi64(_mm512_set1_epi64(-1), found, entries);
    uint32_t rank = (uint32_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(entry)) & BPE_MERGES;
    if (__builtin_expect(!found & bpe_pairs_passed(line), 0)) {
        const uint64_t next = (uint64_t)(line - model->pairs) + BPE_PAIRS_LINE;
        rank = bpe_pair_rank_from(model, pair, next & (((uint64_t)1 << model->pair_bits) - 1)) & BPE_MERGES;
    }
    if (rank > tied && rank != BPE_MERGES)
        rank = tied;
    return rank << LANE_PLACE | place;
}

/* Merges at the lowest key, and prefetches the two pairs that this changes. Returns false if nothing merges any more.
 */
LANE_INLINE bool lane_choose(const struct bpe_model *model, struct lane *lane, uint32_t least, uint32_t tied)
{
    if (least >= LANE_NO_KEY)
        return false;
    const uint32_t at = (least & 63) + 1;
    const uint32_t gone = lane_after(lane->alive, at);
    uint32_t rank = least >> LANE_PLACE;
    if (__builtin_expect(rank == tied, 0)) {
        rank = bpe_pair_rank(model, lane->ids[at], lane->ids[gone]);
        assert(rank != BPE_NONE);
    }
    lane_merge(model, lane, at, gone, bpe_result(model, rank));
    lane_forget(lane, gone);
    return true;
}

/* Reads the two pairs that were prefetched. Returns the lowest key. */
LANE_INLINE uint32_t lane_look(const struct bpe_model *model, struct lane *lane, uint32_t registers, uint32_t tied)
{
    const uint32_t at = lane->at - 1, before = (lane->before - 1) & 63;
    __m512i low = _mm512_load_si512(lane->keys);
#pragma GCC unroll 4
    for (uint32_t i = 1; i < registers; i++)
        low = _mm512_min_epu32(low, _mm512_load_si512(lane->keys + 16 * i));
    uint32_t least = _mm512_reduce_min_epu32(low);
    const uint32_t left = lane_key(model, lane->left, lane->left_line, before, tied);
    const uint32_t right = lane_key(model, lane->right, lane->right_line, at, tied);
    lane->keys[before] = left;
    lane->keys[at] = right;
    least = left < least ? left : least;
    least = right < least ? right : least;
    return least;
}

/* Writes the ids of the parts that are left, and where they begin, to the piece. Returns how many. */
LANE_INLINE uint32_t lane_ids(const struct lane *lane, uint32_t registers)
{
    const uint64_t parts = _bzhi_u64(lane->alive >> 1, lane->piece->count);
    uint32_t made = 0;
    lane->piece->starts = parts;
#pragma GCC unroll 4
    for (uint32_t i = 0; i < registers; i++) {
        const __mmask16 alive = (__mmask16)(parts >> (16 * i));
        const __m512i ids = _mm512_loadu_si512(lane->ids + 1 + 16 * i);
        _mm512_storeu_si512(lane->piece->ids + made, _mm512_maskz_compress_epi32(alive, ids));
        made += (uint32_t)_mm_popcnt_u32(alive);
    }
    return made;
}

#endif
#endif
