/* SPDX-License-Identifier: MIT */
/*
 * minhash_lanes.h - the kernels of minhash.h with vectors of any width. A file that includes this header has defined
 * MINHASH_KERNEL and MINHASH_WAYS_KERNEL, the names of the kernels.
 *
 * The first kernel has a place in each lane. Two vectors at a time keep a, b, and the least hashes in registers, over
 * all shingles of the block. The remainder of a sum x by P = 2^61 - 1 is y = (x mod 2^61) + floor(x / 2^61), or y - P
 * if y is P or more, which is the case for one of 2^58 sums. So the loop computes only t = y - P, which is negative
 * otherwise, and compares that. As P has ones only, t is floor(x / 2^61) - (P and not x). `signs` loses its sign if a t
 * was not negative; the block is then computed again by the plain kernel.
 *
 * The second kernel has a shingle in each lane, and computes 16 bits of a hash, nearly right: see minhash.c.
 */
#ifndef TOKMAP_DEDUP_MINHASH_LANES_H
#define TOKMAP_DEDUP_MINHASH_LANES_H

#include "common/lanes.h"
#include "minhash.h"

enum { LANES = LANES_BYTES / 8, LANES16 = LANES_BYTES / 2, VECTORS = MINHASH_WAYS / LANES16 };

/* Lowers the least hashes of `vectors` vectors of places from j on. `vectors` is a constant where this is called. */
LANES_INLINE void lower_least(const struct minhash_numbers *numbers, const uint64_t *shingles, uint32_t count,
                              uint64_t *least, uint32_t j, uint32_t vectors)
{
    const lanes64 prime = lanes_all(MINHASH_PRIME);
    lanes64 a[2], b[2], lowest[2], signs = lanes_all(UINT64_MAX);
#pragma GCC unroll 2
    for (uint32_t v = 0; v < vectors; v++) {
        a[v] = lanes_load(numbers->a + j + LANES * v);
        b[v] = lanes_load(numbers->b + j + LANES * v);
        lowest[v] = lanes_load(least + j + LANES * v) - prime;
    }
    for (uint32_t i = 0; i < count; i++) {
        const lanes64 shingle = lanes_all(shingles[i]);
#pragma GCC unroll 2
        for (uint32_t v = 0; v < vectors; v++) {
            const lanes64 sum = lanes_multiply(a[v], shingle) + b[v];
            const lanes64 t = (sum >> 61) - (prime & ~sum);
            signs &= t;
            lowest[v] = lanes_lesser(lowest[v], t);
        }
    }
    if (lanes_greater(lanes_all(0), signs) != (1u << LANES) - 1) {
        const struct minhash_numbers some = {numbers->a + j, numbers->b + j, LANES * vectors};
        minhash_plain(&some, shingles, count, least + j);
        return;
    }
#pragma GCC unroll 2
    for (uint32_t v = 0; v < vectors; v++)
        lanes_store(least + j + LANES * v, lowest[v] + prime);
}

void MINHASH_KERNEL(const struct minhash_numbers *numbers, const uint64_t *shingles, uint32_t count, uint64_t *least)
{
    uint32_t j = 0;
    for (; j + 2 * LANES <= numbers->places; j += 2 * LANES)
        lower_least(numbers, shingles, count, least, j, 2);
    for (; j < numbers->places; j += LANES)
        lower_least(numbers, shingles, count, least, j, 1);
}

/* ---- ways ---- */

typedef uint16_t lanes16 __attribute__((vector_size(LANES_BYTES)));
typedef uint16_t lanes_quarter __attribute__((vector_size(LANES_BYTES / 4), aligned(1), may_alias));

LANES_INLINE lanes16 load_parts(const uint16_t *from)
{
    return (lanes16)lanes_load(from);
}

LANES_INLINE lanes16 all16(uint16_t value)
{
    const lanes16 none = {0};
    return none + value;
}

/* Returns the high halves of the products. */
LANES_INLINE lanes16 high_products(lanes16 a, lanes16 b)
{
    return (lanes16)LANES_INTRINSIC(mulhi_epu16)((lanes_register)a, (lanes_register)b);
}

LANES_INLINE lanes16 lesser16(lanes16 a, lanes16 b)
{
    return (lanes16)LANES_INTRINSIC(min_epu16)((lanes_register)a, (lanes_register)b);
}

LANES_INLINE uint16_t least16(lanes16 lanes)
{
    lanes_register wide = (lanes_register)lanes;
#if LANES_BYTES == 64
    const __m256i half = _mm256_min_epu16(_mm512_castsi512_si256(wide), _mm512_extracti64x4_epi64(wide, 1));
#else
    const __m256i half = wide;
#endif
    const __m128i quarter = _mm_min_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    return (uint16_t)_mm_cvtsi128_si32(_mm_minpos_epu16(quarter));
}

/* Returns bits of the lanes that are at most `most`. */
LANES_INLINE uint64_t at_most(lanes16 lanes, uint16_t most)
{
#if LANES_BYTES == 64
    return _mm512_cmple_epu16_mask((__m512i)lanes, (__m512i)all16(most));
#else
    const __m256i found = (__m256i)(lesser16(lanes, all16(most)) == lanes);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(found), _mm256_extracti128_si256(found, 1));
    return (uint32_t)_mm_movemask_epi8(bytes);
#endif
}

/* The shingles of a block by their parts of 16 bits, the lowest one first. The last one is repeated up to a multiple of
 * MINHASH_WAYS. */
struct parts {
    _Alignas(64) uint16_t part[4][MINHASH_BLOCK];
    uint32_t count;
};

static void shingles_split(struct parts *parts, const uint64_t *shingles, uint32_t count)
{
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES)
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++)
            *(lanes_quarter *)(parts->part[k] + i) =
                __builtin_convertvector(lanes_load(shingles + i) >> 16 * k, lanes_quarter);
    for (; i < count || i % MINHASH_WAYS; i++)
        for (int k = 0; k < 4; k++)
            parts->part[k][i] = (uint16_t)(shingles[i < count ? i : count - 1] >> 16 * k);
    parts->count = i;
}

/* Returns the ways of a place. */
LANES_INLINE uint64_t ways_of(const struct parts *parts, uint64_t a, uint64_t b)
{
    lanes16 a_part[4], least[VECTORS], all = all16(UINT16_MAX);
    const lanes16 begin = all16((uint16_t)((b >> 45) + MINHASH_SHORT));
    uint64_t ways = 0;
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++)
        a_part[k] = all16((uint16_t)(a << 3 >> 16 * k));
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++)
        least[v] = all;
    for (uint32_t i = 0; i < parts->count; i += MINHASH_WAYS)
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            lanes16 sum = begin;
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++) {
                const lanes16 part = load_parts(parts->part[k] + i + LANES16 * v);
                sum += a_part[3 - k] * part;
                if (k < 3)
                    sum += high_products(a_part[2 - k], part);
            }
            least[v] = lesser16(least[v], sum);
        }
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++)
        all = lesser16(all, least[v] - MINHASH_SHORT);
    const uint32_t most = least16(all) + 2u * MINHASH_SHORT;
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++)
        ways |= at_most(least[v], (uint16_t)(most < UINT16_MAX ? most : UINT16_MAX)) << LANES16 * v;
    return ways;
}

void MINHASH_WAYS_KERNEL(const struct minhash_numbers *numbers, const uint64_t *shingles, uint32_t count,
                         uint64_t *ways)
{
    struct parts parts;
    shingles_split(&parts, shingles, count);
    for (uint32_t j = 0; j < numbers->places; j++)
        ways[j] = ways_of(&parts, numbers->a[j], numbers->b[j]);
}

#endif
