/*
 * bpe_lanes.h - the merges of several short pieces at once (AVX-512), for bpe_merge_vbmi.c.
 *
 * One piece's merges wait for memory: which pair is next is known only when the pairs around the last one have been
 * looked up. So several pieces take turns: where one has chosen its next merge it asks for the two lines of the pair
 * table that decide what follows, and the others go on meanwhile.
 *
 * A piece has at most 16 parts, or 32, or 62, each at the place of its first, and keys in one register, or two, or four,
 * (rank << 6 | place) of the pair that each part begins: the smallest key is the merge that comes next, of equals the
 * leftmost. Parts that are gone leave a hole: the bits `alive` tell neighbours. Ids and bits stand one further than their
 * places, so that both ends have a neighbour too, which is no token.
 */
#ifndef TOKMAP_BPE_BPE_LANES_H
#define TOKMAP_BPE_BPE_LANES_H

#include "bpe_encode.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define LANES 12
#define LANE_PLACE 6 /* bits */
#define LANE_NO_KEY (BPE_MERGES << LANE_PLACE) /* BPE_MERGES is no rank */
#define LANE_END (BPE_IDS - 1)        /* no token's id: models that have it are not merged here */
#define LANE_INLINE static inline __attribute__((always_inline))

struct lane {
    uint32_t keys[64] __attribute__((aligned(64)));
    uint32_t ids[80];
    uint64_t left, right;        /* pairs that are asked for */
    const uint64_t *left_line, *right_line;
    uint64_t alive;
    uint32_t at, before, gone;   /* of them, and of the part that was merged away: places + 1; before may be 0 */
    struct bpe_pending *piece;
};

/* The keys of a lane, in the first of these registers. */
struct lane_keys {
    __m512i of[4];
};

/* The key of a pair: LANE_NO_KEY and more if it does not merge. (No pair has two ends: an empty entry is none.) tied: ranks
 * from there on are one, and which they are is asked for when they are chosen; BPE_MERGES: none are. */
LANE_INLINE uint32_t lane_key(const struct bpe_model *model, uint64_t pair, const uint64_t *line, uint32_t place,
                              uint32_t tied)
{
    const __m512i entries = _mm512_load_si512(line);
    const __mmask8 found =
        _mm512_cmpeq_epi64_mask(_mm512_srli_epi64(entries, 22), _mm512_set1_epi64((long long)pair));
    const __m512i entry = _mm512_mask_compress_epi64(_mm512_set1_epi64(-1), found, entries);
    uint32_t rank = (uint32_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(entry)) & BPE_MERGES;
    if (__builtin_expect(!found & (line[BPE_PAIRS_LINE - 1] != UINT64_MAX), 0)) {
        const uint64_t next = (uint64_t)(line - model->pairs) + BPE_PAIRS_LINE;
        rank = bpe_pair_rank_from(model, pair, next & (((uint64_t)1 << model->pair_bits) - 1)) & BPE_MERGES;
    }
    if (rank > tied && rank != BPE_MERGES)
        rank = tied;
    return rank << LANE_PLACE | place;
}

LANE_INLINE const uint64_t *lane_line(const struct bpe_model *model, uint64_t pair)
{
    const uint64_t *line = model->pairs + bpe_pair_place(bpe_pair_hash(model, pair));
    _mm_prefetch((const char *)line, _MM_HINT_T0);
    return line;
}

/* Takes the smallest key and asks for what its merge changes; false: there is none. */
LANE_INLINE bool lane_choose(const struct bpe_model *model, struct lane *lane, struct lane_keys keys, uint32_t registers,
                             uint32_t tied)
{
    __m512i low = keys.of[0];
    _mm512_store_si512(lane->keys, low);
    for (uint32_t i = 1; i < registers; i++) {
        low = _mm512_min_epu32(low, keys.of[i]);
        _mm512_store_si512(lane->keys + 16 * i, keys.of[i]);
    }
    const uint32_t least = _mm512_reduce_min_epu32(low);
    if (least >= LANE_NO_KEY)
        return false;
    const uint32_t at = (least & 63) + 1;
    const uint32_t gone = (uint32_t)_tzcnt_u64(lane->alive & ((uint64_t)-2 << at));
    uint32_t rank = least >> LANE_PLACE;
    if (__builtin_expect(rank == tied, 0))
        rank = bpe_pair_rank(model, lane->ids[at], lane->ids[gone]);
    const uint32_t id = bpe_result(model, rank);
    const uint64_t alive = lane->alive & ~((uint64_t)1 << gone);
    const uint32_t after = (uint32_t)_tzcnt_u64(alive & ((uint64_t)-2 << at));
    const uint32_t before = 63 - (uint32_t)_lzcnt_u64(_bzhi_u64(alive, at));
    lane->ids[at] = id;
    lane->alive = alive;
    lane->at = at;
    lane->gone = gone;
    lane->before = before;
    lane->left = bpe_pair_key(lane->ids[before], id);
    lane->right = bpe_pair_key(id, lane->ids[after]);
    lane->left_line = lane_line(model, lane->left);
    lane->right_line = lane_line(model, lane->right);
    return true;
}

/* Ranks of the 16 pairs that begin with the bytes of `left`, as keys. */
LANE_INLINE __m512i lane_byte_keys(const struct bpe_model *model, __m128i left, __m128i right, __mmask16 pairs, int from,
                                   uint32_t tied)
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

LANE_INLINE __m512i lane_set(__m512i keys, uint64_t places, uint32_t key)
{
    return _mm512_mask_set1_epi32(keys, (__mmask16)places, (int)key);
}

/* What was asked for is there: the keys of the two pairs, and the next choice. */
LANE_INLINE bool lane_go_on(const struct bpe_model *model, struct lane *lane, uint32_t registers, uint32_t tied)
{
    const uint32_t at = lane->at, before = lane->before;
    const uint32_t left = lane_key(model, lane->left, lane->left_line, (before - 1) & 63, tied);
    const uint32_t right = lane_key(model, lane->right, lane->right_line, at - 1, tied);
    const uint64_t gone_bit = ((uint64_t)1 << lane->gone) >> 1, before_bit = ((uint64_t)1 << before) >> 1,
                   at_bit = (uint64_t)1 << (at - 1);
    struct lane_keys keys;
    for (uint32_t i = 0; i < registers; i++) {
        keys.of[i] = lane_set(_mm512_load_si512(lane->keys + 16 * i), gone_bit >> (16 * i), UINT32_MAX);
        keys.of[i] = lane_set(keys.of[i], before_bit >> (16 * i), left);
        keys.of[i] = lane_set(keys.of[i], at_bit >> (16 * i), right);
    }
    return lane_choose(model, lane, keys, registers, tied);
}

typedef bool lane_start_function(const struct bpe_model *model, struct lane *lane, struct bpe_pending *piece,
                                 uint32_t registers);
typedef bool lane_go_on_function(const struct bpe_model *model, struct lane *lane, uint32_t registers);
typedef void lane_finish_function(const struct bpe_model *model, const struct lane *lane, uint32_t registers);

/* All pieces, in turns. start and go_on tell whether there is more to do; then finish takes the ids. registers: a constant,
 * so that the loops over them are gone. */
LANE_INLINE void lanes_merge_in(const struct bpe_model *model, struct bpe_pending *const *pieces, uint32_t count,
                                uint32_t registers, lane_start_function *start, lane_go_on_function *go_on,
                                lane_finish_function *finish)
{
    struct lane lanes[LANES];
    uint32_t running = 0, taken = 0;
    while (taken < count && running < LANES) {
        if (start(model, &lanes[running], pieces[taken++], registers))
            running++;
        else
            finish(model, &lanes[running], registers);
    }
    for (uint32_t i = 0; running; i = i + 1 < running ? i + 1 : 0) {
        struct lane *lane = &lanes[i];
        bool goes_on = go_on(model, lane, registers);
        while (!goes_on) {
            finish(model, lane, registers);
            if (taken == count)
                break;
            goes_on = start(model, lane, pieces[taken++], registers);
        }
        if (!goes_on && i != --running)
            *lane = lanes[running];
    }
}

/* The same by the pieces' size, as bpe_merge_many_function has it. */
LANE_INLINE void lanes_merge(const struct bpe_model *model, struct bpe_pending *const *pieces, uint32_t count,
                             uint32_t size, lane_start_function *start, lane_go_on_function *go_on,
                             lane_finish_function *finish)
{
    if (size == 0)
        lanes_merge_in(model, pieces, count, 1, start, go_on, finish);
    else if (size == 1)
        lanes_merge_in(model, pieces, count, 2, start, go_on, finish);
    else
        lanes_merge_in(model, pieces, count, 4, start, go_on, finish);
}

/* The ids of the parts that are left, and how many. */
LANE_INLINE uint32_t lane_ids(const struct lane *lane, uint32_t registers)
{
    const uint64_t parts = _bzhi_u64(lane->alive >> 1, lane->piece->count);
    uint32_t made = 0;
    for (uint32_t i = 0; i < registers; i++) {
        const __mmask16 here = (__mmask16)(parts >> (16 * i));
        const __m512i ids = _mm512_loadu_si512(lane->ids + 1 + 16 * i);
        _mm512_storeu_si512(lane->piece->ids + made, _mm512_maskz_compress_epi32(here, ids));
        made += (uint32_t)_mm_popcnt_u32(here);
    }
    return made;
}

#endif
#endif
