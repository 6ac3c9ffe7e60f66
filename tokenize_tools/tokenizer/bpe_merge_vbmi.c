/* bpe_merge_vbmi.c - the merges of several short pieces of bytes at once (AVX-512); see bpe_lanes.h. */
#include "bpe_lanes.h"

#if defined(__x86_64__)

/* Ranks of the 16 pairs that begin with the bytes of `left`, as keys. */
LANE_INLINE __m512i first_keys(const struct bpe_model *model, __m128i left, __m128i right, __mmask16 pairs, int from)
{
    const __m512i places = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i both = _mm512_or_si512(_mm512_slli_epi32(_mm512_cvtepu8_epi32(left), 8), _mm512_cvtepu8_epi32(right));
    const __m512i ranks = _mm512_mask_i32gather_epi32(_mm512_set1_epi32(-1), pairs, both, model->byte_pairs, 4);
    return _mm512_or_si512(_mm512_slli_epi32(ranks, LANE_PLACE), _mm512_add_epi32(places, _mm512_set1_epi32(from)));
}

LANE_INLINE __m512i first_ids(const struct bpe_model *model, __m128i bytes, __mmask16 parts)
{
    return _mm512_mask_i32gather_epi32(_mm512_set1_epi32(LANE_END), parts, _mm512_cvtepu8_epi32(bytes), model->byte_ids, 4);
}

LANE_INLINE bool start(const struct bpe_model *model, struct lane *lane, struct bpe_pending *piece, uint32_t registers)
{
    const uint64_t parts = _bzhi_u64(UINT64_MAX, piece->count), pairs = parts >> 1;
    struct lane_keys keys;
    lane->piece = piece;
    lane->ids[0] = LANE_END;
    lane->alive = ((uint64_t)2 << piece->count << 1) - 1;
    for (uint32_t i = 0; i < registers; i++) {
        const uint8_t *bytes = piece->bytes + 16 * i;
        const __mmask16 here = (__mmask16)(parts >> (16 * i)), joined = (__mmask16)(pairs >> (16 * i));
        const __m128i left = _mm_maskz_loadu_epi8(here, bytes), right = _mm_maskz_loadu_epi8(joined, bytes + 1);
        keys.of[i] = first_keys(model, left, right, joined, 16 * (int)i);
        _mm512_storeu_si512(lane->ids + 1 + 16 * i, first_ids(model, left, here));
    }
    lane->ids[1 + 16 * registers] = LANE_END;
    return lane_choose(model, lane, keys, registers);
}

LANE_INLINE void finish(const struct lane *lane, uint32_t registers)
{
    const uint64_t parts = _bzhi_u64(lane->alive >> 1, lane->piece->count);
    uint32_t made = 0;
    for (uint32_t i = 0; i < registers; i++) {
        const __mmask16 here = (__mmask16)(parts >> (16 * i));
        const __m512i ids = _mm512_loadu_si512(lane->ids + 1 + 16 * i);
        _mm512_storeu_si512(lane->piece->ids + made, _mm512_maskz_compress_epi32(here, ids));
        made += (uint32_t)_mm_popcnt_u32(here);
    }
    lane->piece->ids_count = made;
}

LANE_INLINE void merge_many(const struct bpe_model *model, struct bpe_pending *const *pieces, uint32_t count,
                            uint32_t registers)
{
    struct lane lanes[LANES];
    uint32_t running = 0, taken = 0;
    while (taken < count && running < LANES) {
        if (start(model, &lanes[running], pieces[taken++], registers))
            running++;
        else
            finish(&lanes[running], registers);
    }
    for (uint32_t i = 0; running; i = i + 1 < running ? i + 1 : 0) {
        struct lane *lane = &lanes[i];
        bool goes_on = lane_go_on(model, lane, registers);
        while (!goes_on) {
            finish(lane, registers);
            if (taken == count)
                break;
            goes_on = start(model, lane, pieces[taken++], registers);
        }
        if (!goes_on && i != --running)
            *lane = lanes[running];
    }
}

void bpe_merge_many_vbmi(const struct bpe_model *model, struct bpe_pending *const *pieces, uint32_t count, uint32_t size)
{
    if (size == 0)
        merge_many(model, pieces, count, 1);
    else if (size == 1)
        merge_many(model, pieces, count, 2);
    else
        merge_many(model, pieces, count, 4);
}

#endif
