/* SPDX-License-Identifier: MIT */
/*
 * expand_lanes.h - the kernels of expand.h with vectors of any width. A file that includes it has defined the following
 * for tokens of FROM = 16 or 32 bits and elements of TO = 32 or 64 bits, of which a vector has LANES(TO):
 *
 *   VECTOR, BYTES                      the type of a vector, and its size
 *   LOAD_FROM_TO(p), STORE(p, v)       the tokens at p as a vector of elements; stores a vector
 *   SET_TO(value), NUMBERS_TO          equal elements; the elements 0, 1, 2, ...
 *   ADD_TO(a, b)                       a sum
 *   CHOOSE_TO(v, bits, j, n, other)    `v`, but `other` where the bit is 1, for the bits of n elements from j on
 *   CLEAR_TO(v, bits, j, n)            the same with 0
 *   STORE_WHERE_TO(p, word, v)         stores the elements whose bits are 1 among the low bits of a word
 *   PERMUTE(v, indices)                the elements of 32 bits that the indices choose
 *   STORE_WIDE_TO(p, v)                stores elements of 32 bits as elements of TO bits
 *   LARGER(a, b)                       the larger ones of elements below 2^32
 *   LARGEST(v, rest)                   the largest of the elements of a vector, of either size, and one more
 *   PREFETCH_LAST(p, count)            of the `count` tokens at p, which are read next: prefetches what is best at once
 *   PREFETCH_ROUND(p, bytes)           prefetches the bytes at p of them, while others are stored
 *
 * An output is written in three parts. The first part makes the vectors after it begin where a store crosses no cache
 * line; elements_before() has its length. Then come whole vectors. The rest is one part, or a loop of single elements:
 *
 *   FIRST_FROM_TO(n, p), STORE_FIRST_TO(p, n, v)    n elements, or a vector, of which the next one writes some again
 *   REST(j, count)                                  "if" or "for", before a block that stores elements from j on
 *   PART(TO)                                        the type of what the block stores: n elements, or the first of them
 *   PART_FROM_TO(n, p), STORE_PART_TO(p, n, v)      loads and stores it
 *   CHOOSE_PART_TO(), CLEAR_PART_TO()               as CHOOSE_TO() and CLEAR_TO()
 *   PART_OF(v, value)                               the part of a vector whose first element is `value`
 *   LARGER_PART(v, rest, part)                      raises the elements of v, or `rest`, to those of a part
 */
#ifndef TOKMAP_STAGING_EXPAND_LANES_H
#define TOKMAP_STAGING_EXPAND_LANES_H

#include <string.h>

#define LANES(to) (8 * BYTES / (to))

/* One vector of a pair. Four of them are a round of the loop: the fewer instructions a line of the row takes, the more
 * of its lines does a processor ask memory for at once. */
#define PAIR(from, to, j)                                                                                              \
    do {                                                                                                               \
        const VECTOR one = LOAD_##from##_##to(tokens + (j)), next = LOAD_##from##_##to(tokens + (j) + 1);              \
        STORE(left + (j), one);                                                                                        \
        STORE(right + (j), next);                                                                                      \
        top = LARGER(top, one);                                                                                        \
        top_next = LARGER(top_next, next);                                                                             \
    } while (0)

#define EXPAND(from, to)                                                                                               \
    static uint32_t one_##from##_##to(const void *in, uint64_t count, void *out)                                       \
    {                                                                                                                  \
        const uint##from##_t *tokens = in;                                                                             \
        int##to##_t *ids = out;                                                                                        \
        uint32_t rest = 0;                                                                                             \
        uint64_t j = elements_before(ids, sizeof *ids, count);                                                         \
        VECTOR top = SET_32(0);                                                                                        \
        if (j) {                                                                                                       \
            top = FIRST_##from##_##to(j, tokens);                                                                      \
            STORE_FIRST_##to(ids, j, top);                                                                             \
        }                                                                                                              \
        for (; j + LANES(to) <= count; j += LANES(to)) {                                                               \
            const VECTOR one = LOAD_##from##_##to(tokens + j);                                                         \
            STORE(ids + j, one);                                                                                       \
            top = LARGER(top, one);                                                                                    \
        }                                                                                                              \
        REST(j, count)                                                                                                 \
        {                                                                                                              \
            const PART(to) one = PART_##from##_##to(count - j, tokens + j);                                            \
            STORE_PART_##to(ids + j, count - j, one);                                                                  \
            LARGER_PART(top, rest, one);                                                                               \
        }                                                                                                              \
        return LARGEST(top, rest);                                                                                     \
    }                                                                                                                  \
    static uint32_t pair_##from##_##to(const void *in, uint64_t count, const void *after, void *inputs, void *targets) \
    {                                                                                                                  \
        const uint##from##_t *tokens = in, *ahead = after ? after : in;                                                \
        int##to##_t *left = inputs, *right = targets;                                                                  \
        uint32_t rest = 0;                                                                                             \
        uint64_t j = elements_before(left, sizeof *left, count);                                                       \
        VECTOR top = SET_32(0), top_next = top;                                                                        \
        if (j) {                                                                                                       \
            top = FIRST_##from##_##to(j, tokens);                                                                      \
            top_next = FIRST_##from##_##to(j, tokens + 1);                                                             \
            STORE_FIRST_##to(left, j, top);                                                                            \
            STORE_FIRST_##to(right, j, top_next);                                                                      \
        }                                                                                                              \
        PREFETCH_LAST(ahead, count);                                                                                   \
        for (; j + 4 * LANES(to) <= count; j += 4 * LANES(to)) {                                                       \
            PREFETCH_ROUND(ahead + j, 4 * LANES(to) * sizeof *ahead);                                                  \
            PAIR(from, to, j);                                                                                         \
            PAIR(from, to, j + LANES(to));                                                                             \
            PAIR(from, to, j + 2 * LANES(to));                                                                         \
            PAIR(from, to, j + 3 * LANES(to));                                                                         \
        }                                                                                                              \
        for (; j + LANES(to) <= count; j += LANES(to))                                                                 \
            PAIR(from, to, j);                                                                                         \
        REST(j, count)                                                                                                 \
        {                                                                                                              \
            const PART(to) one = PART_##from##_##to(count - j, tokens + j);                                            \
            const PART(to) next = PART_##from##_##to(count - j, tokens + j + 1);                                       \
            STORE_PART_##to(left + j, count - j, one);                                                                 \
            STORE_PART_##to(right + j, count - j, next);                                                               \
            LARGER_PART(top, rest, one);                                                                               \
            LARGER_PART(top, rest, next);                                                                              \
        }                                                                                                              \
        return LARGEST(LARGER(top, top_next), rest);                                                                   \
    }                                                                                                                  \
    static void pair_except_##from##_##to(const void *in, const uint64_t *bits, uint64_t count, void *inputs,          \
                                          void *targets)                                                               \
    {                                                                                                                  \
        const uint##from##_t *tokens = in;                                                                             \
        const VECTOR ignore = SET_##to(TOKMAP_IGNORE);                                                                 \
        int##to##_t *left = inputs, *right = targets;                                                                  \
        uint64_t j = elements_before(left, sizeof *left, count);                                                       \
        if (j) {                                                                                                       \
            const VECTOR next = FIRST_##from##_##to(j, tokens + 1);                                                    \
            STORE_FIRST_##to(left, j, FIRST_##from##_##to(j, tokens));                                                 \
            STORE_FIRST_##to(right, j, CHOOSE_##to(next, bits, 0, j, ignore));                                         \
        }                                                                                                              \
        for (; j + LANES(to) <= count; j += LANES(to)) {                                                               \
            const VECTOR next = LOAD_##from##_##to(tokens + j + 1);                                                    \
            STORE(left + j, LOAD_##from##_##to(tokens + j));                                                           \
            STORE(right + j, CHOOSE_##to(next, bits, j, LANES(to), ignore));                                           \
        }                                                                                                              \
        REST(j, count)                                                                                                 \
        {                                                                                                              \
            const PART(to) one = PART_##from##_##to(count - j, tokens + j);                                            \
            const PART(to) next = PART_##from##_##to(count - j, tokens + j + 1);                                       \
            STORE_PART_##to(left + j, count - j, one);                                                                 \
            STORE_PART_##to(right + j, count - j,                                                                      \
                            CHOOSE_PART_##to(next, bits, j, count - j, PART_OF(ignore, TOKMAP_IGNORE)));               \
        }                                                                                                              \
    }
EXPAND(16, 32)
EXPAND(16, 64)
EXPAND(32, 32)
EXPAND(32, 64)

/* In put, words whose bits are all 0 are common and are skipped. */
#define FILL(to)                                                                                                       \
    static void zeros_##to(const uint64_t *bits, uint64_t count, void *out)                                            \
    {                                                                                                                  \
        const VECTOR one = SET_##to(1);                                                                                \
        int##to##_t *flags = out;                                                                                      \
        uint64_t j = 0;                                                                                                \
        for (; j + LANES(to) <= count; j += LANES(to))                                                                 \
            STORE(flags + j, CLEAR_##to(one, bits, j, LANES(to)));                                                     \
        REST(j, count)                                                                                                 \
        {                                                                                                              \
            STORE_PART_##to(flags + j, count - j, CLEAR_PART_##to(PART_OF(one, 1), bits, j, count - j));               \
        }                                                                                                              \
    }                                                                                                                  \
    static void count_##to(uint64_t first, uint64_t count, void *out)                                                  \
    {                                                                                                                  \
        VECTOR value = ADD_##to(NUMBERS_##to, SET_##to((int##to##_t)first));                                           \
        int##to##_t *numbers = out;                                                                                    \
        uint64_t j = 0;                                                                                                \
        for (; j + LANES(to) <= count; j += LANES(to), value = ADD_##to(value, SET_##to(LANES(to))))                   \
            STORE(numbers + j, value);                                                                                 \
        REST(j, count)                                                                                                 \
        {                                                                                                              \
            STORE_PART_##to(numbers + j, count - j, PART_OF(value, (int##to##_t)(first + j)));                         \
        }                                                                                                              \
    }                                                                                                                  \
    static void fill_##to(int64_t value, uint64_t count, void *out)                                                    \
    {                                                                                                                  \
        const VECTOR values = SET_##to(value);                                                                         \
        int##to##_t *filled = out;                                                                                     \
        uint64_t j = 0;                                                                                                \
        for (; j + LANES(to) <= count; j += LANES(to))                                                                 \
            STORE(filled + j, values);                                                                                 \
        REST(j, count)                                                                                                 \
        {                                                                                                              \
            STORE_PART_##to(filled + j, count - j, PART_OF(values, (int##to##_t)value));                               \
        }                                                                                                              \
    }                                                                                                                  \
    static void put_##to(const uint64_t *bits, int64_t value, uint64_t count, void *out)                               \
    {                                                                                                                  \
        const VECTOR values = SET_##to(value);                                                                         \
        int##to##_t *put = out;                                                                                        \
        for (uint64_t j = 0; j < count; j += 64) {                                                                     \
            uint64_t word = bits[j / 64] & ~(uint64_t)0 >> (count - j < 64 ? 64 - (count - j) : 0);                    \
            for (uint64_t at = j; word; word >>= LANES(to), at += LANES(to))                                           \
                STORE_WHERE_##to(put + at, word, values);                                                              \
        }                                                                                                              \
    }
FILL(32)
FILL(64)

/* targets_ahead. Element e of the output is token 1 + e / ahead + e % ahead, so a vector of elements that begins at e
 * needs at most as many tokens from token 1 + e / ahead on if ahead is at most AHEAD_MOST: one load and one
 * permutation, of which there are as many as remainders of e. */
#define AHEAD_MOST (LANES(32) - 1)

static void ahead_indices(uint64_t ahead, VECTOR indices[AHEAD_MOST])
{
    for (uint32_t first = 0; first < ahead; first++) {
        uint32_t lanes[LANES(32)];
        for (uint32_t i = 0; i < LANES(32); i++)
            lanes[i] = (first + i) / (uint32_t)ahead + (first + i) % (uint32_t)ahead;
        indices[first] = LOAD_32_32(lanes);
    }
}

#define AHEAD(from, to, number, type)                                                                                  \
    static void ahead_##from##_##to(const void *in, uint64_t count, uint64_t ahead, void *out)                         \
    {                                                                                                                  \
        const uint##from##_t *tokens = in;                                                                             \
        int##to##_t *ids = out, *end = ids + count * ahead;                                                            \
        VECTOR indices[AHEAD_MOST];                                                                                    \
        uint64_t j = 0, first = 0;                                                                                     \
        if (ahead > AHEAD_MOST) {                                                                                      \
            expand_plain.ahead[number][type](in, count, ahead, out);                                                   \
            return;                                                                                                    \
        }                                                                                                              \
        ahead_indices(ahead, indices);                                                                                 \
        for (; end - ids >= LANES(32) && j + LANES(32) + 1 <= count + ahead; ids += LANES(32)) {                       \
            STORE_WIDE_##to(ids, PERMUTE(LOAD_##from##_32(tokens + j + 1), indices[first]));                           \
            for (first += LANES(32); first >= ahead; first -= ahead)                                                   \
                j++;                                                                                                   \
        }                                                                                                              \
        for (; ids < end; ids++) {                                                                                     \
            int##to##_t value = (int##to##_t)tokens[j + 1 + first];                                                    \
            memcpy(ids, &value, sizeof value);                                                                         \
            if (++first == ahead)                                                                                      \
                first = 0, j++;                                                                                        \
        }                                                                                                              \
    }
AHEAD(16, 32, 0, 0)
AHEAD(16, 64, 0, 1)
AHEAD(32, 32, 1, 0)
AHEAD(32, 64, 1, 1)

/* The members of struct expand_kernels after the name. */
/* clang-format off */
#define EXPAND_KERNELS                                                                                                 \
    {{one_16_32, one_16_64}, {one_32_32, one_32_64}}, {{pair_16_32, pair_16_64}, {pair_32_32, pair_32_64}},            \
        {{pair_except_16_32, pair_except_16_64}, {pair_except_32_32, pair_except_32_64}}, {zeros_32, zeros_64},        \
        {count_32, count_64}, {fill_32, fill_64}, {put_32, put_64},                                                    \
    {                                                                                                                  \
        {ahead_16_32, ahead_16_64}, {ahead_32_32, ahead_32_64}                                                         \
    }
/* clang-format on */

#endif
