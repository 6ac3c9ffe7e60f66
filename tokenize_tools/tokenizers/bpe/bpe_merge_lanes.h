/* SPDX-License-Identifier: MIT */
/*
 * bpe_merge_lanes.h - the merges of several short pieces at once: lanes, and the loop over them. bpe_merge_avx2.c has
 * the rest for AVX2, and bpe_merge_lanes_avx512.h for AVX-512.
 *
 * The idea. Merging one piece is a chain of waits: which pair merges next is known only when the ranks of the two pairs
 * around the last merge have been read, and the table of pairs is larger than the nearest caches. The obvious code
 * merges one piece after the other, and the processor idles most of the time. Here up to LANES pieces are in work, each
 * in a `struct lane`. When a lane has chosen its next merge, it prefetches the two cache lines that its next choice
 * depends on, and the other lanes go on meanwhile. When its turn comes again, both lines have arrived.
 *
 * A turn has two passes over all lanes. In the first, each lane merges at its lowest key, and prefetches. In the
 * second, each reads its two lines, and finds its new lowest key. Whether a piece has ended cannot be predicted. The
 * processor finds out in the first pass, from a key that the second pass has stored. In one pass it would find out only
 * at the end of a chain of loads and comparisons, and would lose all work that it has begun meanwhile. For the same
 * reason whether a pair was found is computed with, and is not a branch.
 *
 * A lane. Each part of the piece stays at the place of its first byte, 0 to 61. The pair that begins at a place has the
 * key (rank << 6 | place), so the lowest key is the lowest rank, and of equal ranks the leftmost. Keys are in one
 * AVX-512 register, or two of AVX2, for pieces of up to 16 bytes, in twice as many for 32, and in four times as many
 * for 62 (size classes, so that loops over registers have constant bounds). One minimum over the registers finds the
 * next merge. Parts that merged into the one before leave a hole: the bits of `alive` say which places still have a
 * part, and counting zeros in it finds the neighbors of a place. Ids and bits of `alive` are one further than their
 * places, so that both ends have a neighbor too, LANE_END, which merges with nothing.
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
 *
 * Tried and not kept, as times the rate of texts whose words are new: 8, 16, 20, and 24 lanes (0.96 to 1.04); a table
 * of pairs with entries of 4 bytes, which are compared with the pair when it merges (0.86 to 1.01); pairs with an end
 * of the piece in lines of their own (0.95 to 1.02); asking a filter of pairs before the line of a pair is fetched
 * (0.71 to 0.79 with a branch, 0.91 to 1.01 without one); reading ids and ranks of 16 bytes at once when a lane starts
 * (0.93 to 1.00); with AVX-512, finding a rank by the number of a bit and a load, as with AVX2 (0.92 to 0.98); a table
 * of pairs of twice the size (1.08 to 1.11 with line ends, 0.99 to 1.01 with natural text, and loading takes 1 ms
 * longer).
 */
#ifndef TOKMAP_BPE_BPE_MERGE_LANES_H
#define TOKMAP_BPE_BPE_MERGE_LANES_H

#include "bpe_merge.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

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
    /* Places + 1 of the part that merged, and of its left neighbor (0: the left end). */
    uint32_t at, before;
    struct bpe_piece *piece;
};

LANE_INLINE const uint64_t *lane_line(const struct bpe_model *model, uint64_t pair)
{
    /* The slot bpe_pair_place(bpe_pair_hash(model, pair)), with one shift less. */
    const uint64_t line_number = pair * model->pair_factor >> (67 - model->pair_bits);
    const uint64_t *line = model->pairs + line_number * BPE_PAIRS_LINE;
    _mm_prefetch((const char *)line, _MM_HINT_T0);
    return line;
}

/* Returns the place + 1 of the first part after the one at place + 1 `at`. */
LANE_INLINE uint32_t lane_after(uint64_t alive, uint32_t at)
{
    return (uint32_t)_tzcnt_u64(alive & ((uint64_t)-2 << at));
}

/* Makes the parts at places + 1 `at` and `gone` one part with this id, and prefetches the two pairs that this changes.
 */
LANE_INLINE void lane_merge(const struct bpe_model *model, struct lane *lane, uint32_t at, uint32_t gone, uint32_t id)
{
    const uint64_t alive = lane->alive & ~((uint64_t)1 << gone);
    const uint32_t after = lane_after(alive, at);
    const uint32_t before = 63 - (uint32_t)__builtin_clzll(_bzhi_u64(alive, at)); /* the left end is always alive */
    lane->ids[at] = id;
    lane->alive = alive;
    lane->at = at;
    lane->before = before;
    lane->left = bpe_pair_key(lane->ids[before], id);
    lane->right = bpe_pair_key(id, lane->ids[after]);
    lane->left_line = lane_line(model, lane->left);
    lane->right_line = lane_line(model, lane->right);
}

/* Takes out the keys of the pairs that the last merge changes. gone: place + 1 of the part that went. Stored alone, and
 * loaded together with others, a key makes the load wait until the store has left the core. So a turn never loads what
 * it has just stored: in the lane's next turn the registers are loaded without these keys, and the two new keys take
 * part in the minimum as numbers. They are stored for the turn after that. */
LANE_INLINE void lane_forget(struct lane *lane, uint32_t gone)
{
    lane->keys[gone - 1] = lane->keys[(lane->before - 1) & 63] = lane->keys[lane->at - 1] = UINT32_MAX;
}

/* Makes each byte of a piece a part, and a lane's first keys from the table of byte pairs. Returns the lowest. One byte
 * after another, because gathers of 16 ids and 16 ranks were slower on Zen 4. */
LANE_INLINE uint32_t lane_start(const struct bpe_model *model, struct lane *lane, struct bpe_piece *piece,
                                uint32_t registers)
{
    const uint8_t *const bytes = piece->bytes;
    const uint32_t count = piece->count;
    uint32_t least = UINT32_MAX;
    lane->piece = piece;
    lane->ids[0] = lane->ids[count + 1] = LANE_END;
    lane->alive = ((uint64_t)2 << count << 1) - 1;
    memset(lane->keys, 0xFF, registers * 16 * sizeof *lane->keys);
    for (uint32_t i = 0; i < count; i++)
        lane->ids[i + 1] = model->byte_ids[bytes[i]];
    for (uint32_t i = 0; i + 1 < count; i++) {
        const uint32_t key = model->byte_pairs[(uint32_t)bytes[i] << 8 | bytes[i + 1]] << LANE_PLACE | i;
        lane->keys[i] = key;
        least = key < least ? key : least;
    }
    return least;
}

/* Makes a lane's first keys. Returns the lowest. */
typedef uint32_t lane_start_function(const struct bpe_model *model, struct lane *lane, struct bpe_piece *piece,
                                     uint32_t registers);
/* Reads the two pairs that were prefetched. Returns the lowest key. */
typedef uint32_t lane_look_function(const struct bpe_model *model, struct lane *lane, uint32_t registers);
/* Merges at the lowest key and prefetches the two pairs that this changes. Returns false if nothing merges any more. */
typedef bool lane_choose_function(const struct bpe_model *model, struct lane *lane, uint32_t least);
/* Takes the ids of a lane in which nothing merges any more. */
typedef void lane_finish_function(const struct bpe_model *model, const struct lane *lane, uint32_t registers);

/* Merges all pieces. registers: a constant in each call, so that the loops over registers are unrolled. */
LANE_INLINE void lanes_merge_in(const struct bpe_model *model, struct bpe_piece *const *pieces, uint32_t count,
                                uint32_t registers, lane_start_function *start, lane_look_function *look,
                                lane_choose_function *choose, lane_finish_function *finish)
{
    struct lane all[LANES], *lanes[LANES]; /* the first `running` of lanes[] are in work */
    uint32_t least[LANES], running = 0, taken = 0;
    for (uint32_t i = 0; i < LANES; i++)
        lanes[i] = &all[i];
    for (; taken < count && running < LANES; running++, taken++)
        least[running] = start(model, lanes[running], pieces[taken], registers);
    while (running) {
        for (uint32_t i = 0; i < running;) {
            bool merged = choose(model, lanes[i], least[i]);
            while (!merged) {
                finish(model, lanes[i], registers);
                if (taken == count)
                    break;
                merged = choose(model, lanes[i], start(model, lanes[i], pieces[taken++], registers));
            }
            if (merged) {
                i++;
            } else {
                struct lane *const last = lanes[--running];
                lanes[i] = last;
                least[i] = least[running];
            }
        }
        for (uint32_t i = 0; i < running; i++)
            least[i] = look(model, lanes[i], registers);
    }
}

/* Does the same for a size class, as a bpe_merge_many_function gets it. */
LANE_INLINE void lanes_merge(const struct bpe_model *model, struct bpe_piece *const *pieces, uint32_t count,
                             uint32_t size_class, lane_start_function *start, lane_look_function *look,
                             lane_choose_function *choose, lane_finish_function *finish)
{
    if (size_class == 0)
        lanes_merge_in(model, pieces, count, 1, start, look, choose, finish);
    else if (size_class == 1)
        lanes_merge_in(model, pieces, count, 2, start, look, choose, finish);
    else
        lanes_merge_in(model, pieces, count, 4, start, look, choose, finish);
}

#endif
#endif
