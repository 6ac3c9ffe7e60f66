/* SPDX-License-Identifier: MIT */
/*
 * bpe_merge_vbmi.c - the merges of several short pieces of bytes at once (AVX-512); see bpe_merge_lanes.h.
 */
#include "bpe_merge_lanes_avx512.h"

#if defined(__x86_64__)

LANE_INLINE uint32_t look(const struct bpe_model *model, struct lane *lane, uint32_t registers)
{
    return lane_look(model, lane, registers, BPE_MERGES);
}

LANE_INLINE bool choose(const struct bpe_model *model, struct lane *lane, uint32_t least)
{
    return lane_choose(model, lane, least, BPE_MERGES);
}

LANE_INLINE void finish(const struct bpe_model *model, const struct lane *lane, uint32_t registers)
{
    lane->piece->ids_count = lane_ids(lane, registers);
}

void bpe_merge_many_vbmi(const struct bpe_model *model, struct bpe_piece *const *pieces, uint32_t count,
                         uint32_t size_class)
{
    lanes_merge(model, pieces, count, size_class, lane_start, look, choose, finish);
}

#endif
