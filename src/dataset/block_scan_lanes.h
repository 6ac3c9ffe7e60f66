/* SPDX-License-Identifier: MIT */
/*
 * block_scan_lanes.h - the kernel of block_scan_kernel.h with vectors of any width. A stripe is one vector of AVX-512,
 * or two of AVX2; each part of it has its own accumulators, which are computed one after the other over a round. A file
 * that includes this header has defined SCAN_PART, the name of the kernel.
 */
#ifndef TOKMAP_DATASET_BLOCK_SCAN_LANES_H
#define TOKMAP_DATASET_BLOCK_SCAN_LANES_H

#include "block_scan_kernel.h"
#include "common/lanes.h"

enum { STRIPE_VECTORS = STRIPE_BYTES / LANES_BYTES };

/* Returns what a part of a stripe adds to its accumulators. */
LANES_INLINE lanes64 added(lanes64 data, lanes64 key)
{
    const lanes64 keyed = data ^ key;
    const lanes64 swapped = (lanes64)LANES_INTRINSIC(shuffle_epi32)((lanes_register)data, 0x4e);
    return swapped + lanes_multiply_halves(keyed, keyed >> 32);
}

LANES_INLINE lanes64 scramble(lanes64 acc, lanes64 key)
{
    const lanes64 prime = lanes_all(SCRAMBLE_PRIME), mixed = acc ^ acc >> 47 ^ key;
    return lanes_multiply_halves(mixed, prime) + (lanes_multiply_halves(mixed >> 32, prime) << 32);
}

/* Adds a round to part `part` of the accumulators. end, page_end: the round ends the block, or the page; page: NULL, or
 * this part of the page's accumulators. */
LANES_INLINE lanes64 round_add(lanes64 acc, lanes64 *page, const uint8_t *tokens, lanes64 *top, size_t part, bool wide,
                               bool end, bool page_end)
{
    const uint8_t *secret = (const uint8_t *)scan_secret + LANES_BYTES * part, *from = tokens + LANES_BYTES * part;
    const lanes64 scramble_key = lanes_load(secret + SECRET_SCRAMBLE);
    lanes64 sum = lanes_all(0), data;
    for (size_t i = 0; i < 15; i++) {
        data = lanes_load(from + STRIPE_BYTES * i);
        *top = lanes_larger_ids(*top, data, wide);
        sum += added(data, lanes_load(secret + 8 * i));
    }
    data = lanes_load(from + STRIPE_BYTES * 15);
    *top = lanes_larger_ids(*top, data, wide);
    /* The last stripe of a block or a page has another place in the secret, and no scramble after it. */
    const lanes64 inner = sum + added(data, lanes_load(secret + 8 * 15));
    const lanes64 outer = sum + added(data, lanes_load(secret + SECRET_LAST));
    if (page)
        *page = page_end ? *page + outer : scramble(*page + inner, scramble_key);
    return end ? acc + outer : scramble(acc + inner, scramble_key);
}

LANES_INLINE uint64_t scan(uint64_t acc_stored[8], const uint8_t *tokens, size_t bytes, bool wide, bool last,
                           uint64_t (*pages)[8])
{
    lanes64 acc[STRIPE_VECTORS], page[STRIPE_VECTORS], top[STRIPE_VECTORS];
    for (size_t part = 0; part < STRIPE_VECTORS; part++) {
        acc[part] = lanes_load((uint8_t *)acc_stored + LANES_BYTES * part);
        page[part] = lanes_load((const uint8_t *)scan_start + LANES_BYTES * part);
        top[part] = lanes_all(0);
    }
    for (size_t at = 0, round = 0; at < bytes; at += ROUND_BYTES, round++) {
        const bool end = last && at + ROUND_BYTES == bytes, page_end = round % PAGE_ROUNDS == PAGE_ROUNDS - 1;
#pragma GCC unroll 2
        for (size_t part = 0; part < STRIPE_VECTORS; part++) {
            acc[part] =
                round_add(acc[part], pages ? &page[part] : NULL, tokens + at, &top[part], part, wide, end, page_end);
            if (pages && page_end) {
                lanes_store((uint8_t *)pages[round / PAGE_ROUNDS] + LANES_BYTES * part, page[part]);
                page[part] = lanes_load((const uint8_t *)scan_start + LANES_BYTES * part);
            }
        }
    }
    for (size_t part = 0; part < STRIPE_VECTORS; part++) {
        lanes_store((uint8_t *)acc_stored + LANES_BYTES * part, acc[part]);
        top[0] = lanes_larger_ids(top[0], top[part], wide);
    }
    return lanes_largest_id(top[0], wide);
}

uint64_t SCAN_PART(uint64_t acc[8], const uint8_t *tokens, size_t bytes, uint32_t width, bool last,
                   uint64_t (*pages)[8])
{
    return width == 4 ? scan(acc, tokens, bytes, true, last, pages) : scan(acc, tokens, bytes, false, last, pages);
}

#endif
