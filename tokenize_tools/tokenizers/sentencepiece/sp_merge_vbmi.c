/* SPDX-License-Identifier: MIT */
/*
 * sp_merge_vbmi.c - the merges of several short pieces of characters at once (AVX-512); see bpe_merge_lanes.h.
 *
 * A part has the place of its first byte, so characters of several bytes leave holes from the start. The first keys of
 * ASCII come from the table of pairs by bytes. For other pieces the cache lines of all first pairs are prefetched, and
 * the keys are made when the lane looks for the first time.
 */
#include "bpe/bpe_merge_lanes_avx512.h"
#include "sp_merge.h"

#if defined(__x86_64__)

/* In place of lane.at: the lines of all first pairs have just been prefetched, or may be read now. */
enum { FRESH = 100, READY };

LANE_INLINE const struct sp_model *own_of(const struct bpe_model *model)
{
    return (const struct sp_model *)model;
}

/* The first keys of a lane; the first 1, 2, or 4 registers are used. */
struct lane_keys {
    __m512i of[4];
};

/* Stores a lane's first keys. Returns the lowest. */
LANE_INLINE uint32_t lane_first(struct lane *lane, struct lane_keys keys, uint32_t registers)
{
    __m512i low = keys.of[0];
    _mm512_store_si512(lane->keys, low);
#pragma GCC unroll 4
    for (uint32_t i = 1; i < registers; i++) {
        low = _mm512_min_epu32(low, keys.of[i]);
        _mm512_store_si512(lane->keys + 16 * i, keys.of[i]);
    }
    return _mm512_reduce_min_epu32(low);
}

/* Returns the keys of the 16 pairs of single bytes left[i], right[i], which begin at place from + i. Bits of `pairs`:
 * those that exist. */
LANE_INLINE __m512i lane_byte_keys(const struct bpe_model *model, __m128i left, __m128i right, __mmask16 pairs,
                                   int from, uint32_t tied)
{
    const __m512i places = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i both = _mm512_or_si512(_mm512_slli_epi32(_mm512_cvtepu8_epi32(left), 8), _mm512_cvtepu8_epi32(right));
    __m512i ranks = _mm512_mask_i32gather_epi32(_mm512_set1_epi32(-1), pairs, both, model->byte_pairs, 4);
    if (tied != BPE_MERGES) {
        const __mmask16 merge = _mm512_cmplt_epu32_mask(ranks, _mm512_set1_epi32(BPE_MERGES));
        ranks = _mm512_mask_min_epu32(ranks, merge, ranks, _mm512_set1_epi32((int)tied));
    }
    return _mm512_or_si512(_mm512_slli_epi32(ranks, LANE_PLACE), _mm512_add_epi32(places, _mm512_set1_epi32(from)));
}

/* Starts a lane with a piece of ASCII. Returns the lowest key. */
LANE_INLINE uint32_t start_ascii(const struct bpe_model *model, struct lane *lane, const uint8_t *bytes, uint32_t count,
                                 uint32_t registers)
{
    const uint64_t parts = _bzhi_u64(UINT64_MAX, count), pairs = parts >> 1;
    struct lane_keys keys;
    lane->alive = ((uint64_t)2 << count << 1) - 1;
    lane->at = 0;
    for (uint32_t i = 0; i < registers; i++) {
        const __mmask16 present = (__mmask16)(parts >> (16 * i)), joined = (__mmask16)(pairs >> (16 * i));
        const __m128i left = _mm_maskz_loadu_epi8(present, bytes + 16 * i),
                      right = _mm_maskz_loadu_epi8(joined, bytes + 16 * i + 1);
        keys.of[i] = lane_byte_keys(model, left, right, joined, 16 * (int)i, own_of(model)->tied);
        const __m512i atoms = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), present, _mm512_cvtepu8_epi32(left),
                                                          own_of(model)->atoms, 4);
        const __m512i symbols = _mm512_sub_epi32(atoms, _mm512_set1_epi32(1)); /* without an atom: UINT32_MAX */
        _mm512_storeu_si512(lane->ids + 1 + 16 * i, _mm512_mask_min_epu32(_mm512_set1_epi32(LANE_END), present, symbols,
                                                                          _mm512_set1_epi32(SP_NO_SYMBOL)));
    }
    lane->ids[1 + 16 * registers] = LANE_END;
    return lane_first(lane, keys, registers);
}

/* Starts a lane with any piece; look() makes its first keys. */
LANE_INLINE void start_any(const struct bpe_model *model, struct lane *lane, const uint8_t *bytes, uint32_t count)
{
    uint32_t before = LANE_END, length;
    uint64_t alive = 1;
    for (uint32_t at = 0; at < count; at += length) {
        const uint32_t atom = own_of(model)->atoms[sp_character(bytes + at, count - at, &length)];
        const uint32_t symbol = atom ? atom - 1 : SP_NO_SYMBOL;
        if (at)
            (void)lane_line(model, bpe_pair_key(before, symbol));
        lane->ids[at + 1] = before = symbol;
        alive |= (uint64_t)2 << at;
    }
    lane->ids[count + 1] = LANE_END;
    lane->alive = alive | (uint64_t)2 << count;
    lane->at = FRESH;
}

LANE_INLINE uint32_t start(const struct bpe_model *model, struct lane *lane, struct bpe_piece *piece,
                           uint32_t registers)
{
    const uint64_t parts = _bzhi_u64(UINT64_MAX, piece->count);
    lane->piece = piece;
    lane->ids[0] = LANE_END;
    if (!_mm512_movepi8_mask(_mm512_maskz_loadu_epi8(parts, piece->bytes)))
        return start_ascii(model, lane, piece->bytes, piece->count, registers);
    start_any(model, lane, piece->bytes, piece->count);
    return LANE_NO_KEY;
}

LANE_INLINE bool choose(const struct bpe_model *model, struct lane *lane, uint32_t least)
{
    if (lane->at != FRESH)
        return lane_choose(model, lane, least, own_of(model)->tied);
    lane->at = READY;
    return true;
}

LANE_INLINE uint32_t look(const struct bpe_model *model, struct lane *lane, uint32_t registers)
{
    if (lane->at != READY)
        return lane_look(model, lane, registers, own_of(model)->tied);
    lane->at = 0;
    uint32_t first_keys[64] __attribute__((aligned(64)));
    struct lane_keys keys;
    for (uint32_t i = 0; i < registers; i++)
        _mm512_store_si512(first_keys + 16 * i, _mm512_set1_epi32(-1));
    uint64_t rest = _bzhi_u64(lane->alive, lane->piece->count + 1) >> 1;
    for (uint32_t at = (uint32_t)_tzcnt_u64(rest); (rest = _blsr_u64(rest)) != 0;) {
        const uint32_t next = (uint32_t)_tzcnt_u64(rest);
        const uint64_t pair = bpe_pair_key(lane->ids[at + 1], lane->ids[next + 1]);
        first_keys[at] = lane_key(model, pair, lane_line(model, pair), at, own_of(model)->tied);
        at = next;
    }
    for (uint32_t i = 0; i < registers; i++)
        keys.of[i] = _mm512_load_si512(first_keys + 16 * i);
    return lane_first(lane, keys, registers);
}

/* Leaves symbols in the place of ids, and prefetches the ids. */
LANE_INLINE void finish(const struct bpe_model *model, const struct lane *lane, uint32_t registers)
{
    const uint32_t made = lane_ids(lane, registers);
    for (uint32_t i = 0; i < made; i++)
        _mm_prefetch((const char *)&own_of(model)->ids[lane->piece->ids[i]], _MM_HINT_T0);
    lane->piece->ids_count = made;
}

/* Some of the symbols are not tokens: merges the piece again with sp_merge(), which can write several ids for a symbol.
 */
static __attribute__((noinline)) void merge_again(const struct bpe_model *model, struct bpe_piece *piece)
{
    struct bpe_scratch unused = {.memory = NULL}; /* short pieces do not need it */
    piece->ids_count = (uint32_t)sp_merge(model, &unused, piece->bytes, piece->count, piece->ids);
}

/* Replaces the symbols of a piece by ids. */
static void find_ids(const struct bpe_model *model, struct bpe_piece *piece)
{
    const uint32_t symbols = own_of(model)->symbols;
    bool unknown = false;
    for (uint32_t i = 0; i < piece->ids_count; i++) {
        piece->ids[i] = piece->ids[i] < symbols ? own_of(model)->ids[piece->ids[i]] : BPE_NONE;
        unknown |= piece->ids[i] == BPE_NONE;
    }
    if (__builtin_expect(unknown, 0))
        merge_again(model, piece);
}

void sp_merge_many_vbmi(const struct bpe_model *model, struct bpe_piece *const *pieces, uint32_t count,
                        uint32_t size_class)
{
    lanes_merge(model, pieces, count, size_class, start, look, choose, finish);
    for (uint32_t i = 0; i < count; i++)
        find_ids(model, pieces[i]);
}

#endif
