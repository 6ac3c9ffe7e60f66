/* SPDX-License-Identifier: MIT */
/*
 * minhash_lanes.h - the kernel of minhash.h with vectors of any width. Two vectors at a time keep a, b, and the least
 * hashes in registers, over all shingles of the block. A file that includes this header has defined MINHASH_KERNEL, the
 * name of the kernel.
 *
 * The remainder of a sum x by P = 2^61 - 1 is y = (x mod 2^61) + floor(x / 2^61), or y - P if y is P or more, which is
 * the case for one of 2^58 sums. So the loop computes only t = y - P, which is negative otherwise, and compares that.
 * As P has ones only, t is floor(x / 2^61) - (P and not x). `signs` loses its sign if a t was not negative; the block
 * is then computed again by the plain kernel.
 */
#ifndef TOKMAP_DEDUP_MINHASH_LANES_H
#define TOKMAP_DEDUP_MINHASH_LANES_H

#include "common/lanes.h"
#include "minhash.h"

enum { LANES = LANES_BYTES / 8 };

/* Lowers the least hashes of `vectors` vectors of places from j on, a constant where it is called. */
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

#endif
