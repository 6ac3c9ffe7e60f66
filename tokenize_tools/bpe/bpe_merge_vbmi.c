/*
 * bpe_merge_vbmi.c - the merges of several short pieces of bytes at once (AVX-512); see bpe_merge_lanes.h. Each byte
 * begins as a part, and the first keys come from the table of byte pairs.
 */
#include "bpe_merge_lanes_avx512.h"

#if defined(__x86_64__)

/* The ids of 16 bytes; LANE_END where there is no part. */
LANE_INLINE __m512i first_ids(const struct bpe_model *model, __m128i bytes, __mmask16 parts)
{
    return _mm512_mask_i32gather_epi32(_mm512_set1_epi32(LANE_END), parts, _mm512_cvtepu8_epi32(bytes), model->byte_ids,
                                       4);
}

LANE_INLINE uint32_t start(const struct bpe_model *model, struct lane *lane, struct bpe_piece *piece,
                           uint32_t registers)
{
    const uint64_t parts = _bzhi_u64(UINT64_MAX, piece->count), pairs = parts >> 1;
    struct lane_keys keys;
    lane->piece = piece;
    lane->ids[0] = LANE_END;
    lane->alive = ((uint64_t)2 << piece->count << 1) - 1;
#pragma GCC unroll 4
    for (uint32_t i = 0; i < registers; i++) {
        const uint8_t *bytes = piece->bytes + 16 * i;
        const __mmask16 present = (__mmask16)(parts >> (16 * i)), joined = (__mmask16)(pairs >> (16 * i));
        const __m128i left = _mm_maskz_loadu_epi8(present, bytes), right = _mm_maskz_loadu_epi8(joined, bytes + 1);
        keys.of[i] = lane_byte_keys(model, left, right, joined, 16 * (int)i, BPE_MERGES);
        _mm512_storeu_si512(lane->ids + 1 + 16 * i, first_ids(model, left, present));
    }
    lane->ids[1 + 16 * registers] = LANE_END;
    return lane_first(lane, keys, registers);
}

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
    lanes_merge(model, pieces, count, size_class, start, look, choose, finish);
}

#endif
