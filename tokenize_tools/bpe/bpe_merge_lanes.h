/*
 * bpe_merge_lanes.h - the merges of several short pieces at once (AVX-512), shared by bpe_merge_vbmi.c and
 * sp_merge_vbmi.c.
 *
 * The idea. Merging one piece is a chain of waits: which pair merges next is known only when the ranks of the two pairs
 * around the last merge have been read, and the table of pairs is larger than the nearest caches. The obvious code
 * merges one piece after the other, and the processor idles most of the time. Here up to LANES pieces are in work, each
 * in a `struct lane`. When a lane has chosen its next merge, it prefetches the two cache lines that its next choice
 * depends on, and the other lanes go on meanwhile. When its turn comes again, both lines have arrived.
 *
 * A lane. Each part of the piece stays at the place of its first byte, 0 to 61. The pair that begins at a place has the
 * key (rank << 6 | place), so the lowest key is the lowest rank, and of equal ranks the leftmost. Keys are in one
 * AVX-512 register for pieces of up to 16 bytes, in two for 32, and in four for 62 (size classes, so that loops over
 * registers have constant bounds). One minimum over the registers finds the next merge. Parts that merged into the one
 * before leave a hole: the bits of `alive` say which places still have a part, and counting zeros in it finds the
 * neighbors of a place. Ids and bits of `alive` are one further than their places, so that both ends have a neighbor
 * too, LANE_END, which merges with nothing.
 *
 * Example: "then" with the pairs t+h (rank 7), h+e (rank 2), and he+n (rank 9).
 *     places   0     1     2     3
 *     ids      t     h     e     n          alive 111111: both ends and four parts
 *     keys     7<<6|0  2<<6|1  none  none
 * The lowest key is 2<<6|1: the merge at place 1. The place after it that is alive is 2, so the part at 2 goes, and
 * place 1 becomes "he". The pairs t+he (at place 0) and he+n (at place 1) are prefetched. In the lane's next turn the
 * first is not in the table and the second has rank 9, so 9<<6|1 is the only key, and the next merge is at place 1
 * again.
 *
 * Cost: one turn for each merge, and a turn waits for memory only if fewer pieces are in work than it takes to cover a
 * miss.
 */
#ifndef TOKMAP_BPE_BPE_MERGE_LANES_H
#define TOKMAP_BPE_BPE_MERGE_LANES_H

#include "bpe_merge.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define LANES 12
#define LANE_PLACE 6                           /* bits of a place in a key */
#define LANE_NO_KEY (BPE_MERGES << LANE_PLACE) /* keys from here on are of pairs that do not merge */
#define LANE_END (BPE_IDS - 1)                 /* both ends of a piece; models that use this id are not merged here */
#define LANE_INLINE static inline __attribute__((always_inline))

struct lane {
    uint32_t keys[64] __attribute__((aligned(64)));
    uint32_t ids[80];
    uint64_t left, right;                   /* the pairs around the last merge, */
    const uint64_t *left_line, *right_line; /* and the lines of the table that were prefetched for them */
    uint64_t alive;
    /* Places + 1 of the part that merged, of its left neighbor (0: the left end), and of the part that went. */
    uint32_t at, before, gone;
    struct bpe_piece *piece;
};

/* The keys of a lane; the first 1, 2, or 4 registers are used. */
struct lane_keys {
    __m512i of[4];
};

/* The key of a pair that begins at `place`: LANE_NO_KEY or more if it does not merge. (A pair of two ends does not
 * occur, so an empty slot matches no pair.) tied: ranks from this one on count as equal, so that they merge from
 * left to right; the real rank is looked up when such a key is chosen. BPE_MERGES: no ranks are tied. */
LANE_INLINE uint32_t lane_key(const struct bpe_model *model, uint64_t pair, const uint64_t *line, uint32_t place,
                              uint32_t tied)
{
    const __m512i entries = _mm512_load_si512(line);
    const __mmask8 found = _mm512_cmpeq_epi64_mask(_mm512_srli_epi64(entries, 22), _mm512_set1_epi64((long long)pair));
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

/* Merges at the lowest key and prefetches the two pairs that this changes. Returns false if nothing merges any more. */
LANE_INLINE bool lane_choose(const struct bpe_model *model, struct lane *lane, struct lane_keys keys,
                             uint32_t registers, uint32_t tied)
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

/* The keys of the 16 pairs of single bytes left[i], right[i], which begin at place from + i. Bits of `pairs`: those
 * that exist. */
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

LANE_INLINE __m512i lane_set(__m512i keys, uint64_t places, uint32_t key)
{
    return _mm512_mask_set1_epi32(keys, (__mmask16)places, (int)key);
}

/* The next turn of a lane: reads the two pairs that were prefetched, and merges again. Returns false at the end. */
LANE_INLINE bool lane_step(const struct bpe_model *model, struct lane *lane, uint32_t registers, uint32_t tied)
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

typedef bool lane_start_function(const struct bpe_model *model, struct lane *lane, struct bpe_piece *piece,
                                 uint32_t registers);
typedef bool lane_step_function(const struct bpe_model *model, struct lane *lane, uint32_t registers);
typedef void lane_finish_function(const struct bpe_model *model, const struct lane *lane, uint32_t registers);

/* Merges all pieces. start() and step() return whether the lane continues; if it does not, finish() takes its ids.
 * registers: a constant in each call, so that the loops over registers are unrolled. */
LANE_INLINE void lanes_merge_in(const struct bpe_model *model, struct bpe_piece *const *pieces, uint32_t count,
                                uint32_t registers, lane_start_function *start, lane_step_function *step,
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
        bool goes_on = step(model, lane, registers);
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

/* The same for a size class, as a bpe_merge_many_function gets it. */
LANE_INLINE void lanes_merge(const struct bpe_model *model, struct bpe_piece *const *pieces, uint32_t count,
                             uint32_t size_class, lane_start_function *start, lane_step_function *step,
                             lane_finish_function *finish)
{
    if (size_class == 0)
        lanes_merge_in(model, pieces, count, 1, start, step, finish);
    else if (size_class == 1)
        lanes_merge_in(model, pieces, count, 2, start, step, finish);
    else
        lanes_merge_in(model, pieces, count, 4, start, step, finish);
}

/* Writes the ids of the parts that are left to the piece. Returns how many. */
LANE_INLINE uint32_t lane_ids(const struct lane *lane, uint32_t registers)
{
    const uint64_t parts = _bzhi_u64(lane->alive >> 1, lane->piece->count);
    uint32_t made = 0;
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
