/* SPDX-License-Identifier: MIT */
/*
 * bpe_merge_avx2.c - the merges of several short pieces of bytes at once with AVX2; see bpe_merge_lanes.h.
 */
#include "bpe_merge_lanes.h"

#if defined(__x86_64__)

/* Returns the key of a pair that begins at `place`: LANE_NO_KEY or more if it does not merge. */
LANE_INLINE uint32_t key_of_pair(const struct bpe_model *model, uint64_t pair, const uint64_t *line, uint32_t place)
{
    const __m256i *const entries = (const __m256i *)(const void *)line, wanted = _mm256_set1_epi64x((long long)pair);
    const __m256i low = _mm256_cmpeq_epi64(_mm256_srli_epi64(_mm256_load_si256(entries), 22), wanted);
    const __m256i high = _mm256_cmpeq_epi64(_mm256_srli_epi64(_mm256_load_si256(entries + 1), 22), wanted);
    const uint32_t found = (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(low)) |
                           (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(high)) << 4;
    /* The processor cannot predict whether a pair merges, so `none` must not become a branch: compilers would make one
     * of it if they knew where it comes from. */
    uint32_t none = found ? 0 : BPE_MERGES;
    __asm__("" : "+r"(none));
    uint32_t rank = ((uint32_t)line[_tzcnt_u32(found) & 7] | none) & BPE_MERGES;
    uint32_t goes_on = none & -(uint32_t)bpe_pairs_passed(line);
    __asm__("" : "+r"(goes_on));
    if (__builtin_expect(goes_on, 0)) {
        const uint64_t next = (uint64_t)(line - model->pairs) + BPE_PAIRS_LINE;
        rank = bpe_pair_rank_from(model, pair, next & (((uint64_t)1 << model->pair_bits) - 1)) & BPE_MERGES;
    }
    return rank << LANE_PLACE | place;
}

/* Returns the lowest of 16, 32, or 64 keys. */
LANE_INLINE uint32_t lowest_key(const uint32_t *keys, uint32_t registers)
{
    const __m256i *const row = (const __m256i *)(const void *)keys;
    __m256i low = _mm256_load_si256(row);
#pragma GCC unroll 8
    for (uint32_t i = 1; i < 2 * registers; i++)
        low = _mm256_min_epu32(low, _mm256_load_si256(row + i));
    __m128i four = _mm_min_epu32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    four = _mm_min_epu32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(1, 0, 3, 2)));
    four = _mm_min_epu32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(2, 3, 0, 1)));
    return (uint32_t)_mm_cvtsi128_si32(four);
}

/* Merges at the lowest key and prefetches the two pairs that this changes. Returns false if nothing merges any more. */
LANE_INLINE bool choose(const struct bpe_model *model, struct lane *lane, uint32_t least)
{
    if (least >= LANE_NO_KEY)
        return false;
    const uint32_t at = (least & 63) + 1;
    const uint32_t gone = lane_after(lane->alive, at);
    lane_merge(model, lane, at, gone, bpe_result(model, least >> LANE_PLACE));
    lane_forget(lane, gone);
    return true;
}

/* Reads the two pairs that were prefetched. Returns the lowest key. */
LANE_INLINE uint32_t look(const struct bpe_model *model, struct lane *lane, uint32_t registers)
{
    const uint32_t at = lane->at, before = (lane->before - 1) & 63;
    uint32_t least = lowest_key(lane->keys, registers);
    const uint32_t left = key_of_pair(model, lane->left, lane->left_line, before);
    const uint32_t right = key_of_pair(model, lane->right, lane->right_line, at - 1);
    lane->keys[before] = left;
    lane->keys[at - 1] = right;
    least = left < least ? left : least;
    least = right < least ? right : least;
    return least;
}

LANE_INLINE void finish(const struct bpe_model *model, const struct lane *lane, uint32_t registers)
{
    uint64_t parts = _bzhi_u64(lane->alive >> 1, lane->piece->count);
    uint32_t *into = lane->piece->ids;
    lane->piece->starts = parts;
    lane->piece->ids_count = (uint32_t)_mm_popcnt_u64(parts);
    /* Most pieces become two to four tokens. How many cannot be predicted, so four are stored in any case. */
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++, parts = _blsr_u64(parts))
        *into++ = lane->ids[_tzcnt_u64(parts) + 1];
    for (; parts; parts = _blsr_u64(parts))
        *into++ = lane->ids[_tzcnt_u64(parts) + 1];
}

void bpe_merge_many_avx2(const struct bpe_model *model, struct bpe_piece *const *pieces, uint32_t count,
                         uint32_t size_class)
{
    lanes_merge(model, pieces, count, size_class, lane_start, look, choose, finish);
}

#endif
