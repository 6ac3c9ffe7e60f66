/* SPDX-License-Identifier: MIT */
/* bit_copy.h - copies a range of bits to another place. Bit i is bit i mod 8 of byte i / 8. */
#ifndef TOKMAP_COMMON_BIT_COPY_H
#define TOKMAP_COMMON_BIT_COPY_H

#include "bytes.h"

/* Copies at most 8 bits that are in one byte of `into`. */
static inline void bit_copy_byte(uint8_t *into, uint64_t at, const uint8_t *from, uint64_t first, uint64_t count)
{
    uint32_t bits = from[first / 8] >> (first % 8);
    if (first % 8 + count > 8)
        bits |= (uint32_t)from[first / 8 + 1] << (8 - first % 8);
    const uint32_t mask = ((1u << count) - 1) << (at % 8);
    into[at / 8] = (uint8_t)((into[at / 8] & ~mask) | (bits << (at % 8) & mask));
}

/* Copies bits [first, first + count) of `from` to bits [at, at + count) of `into`, whose other bits do not change. No
 * byte outside the two ranges is touched. They must not overlap. */
static inline void bit_copy(uint8_t *into, uint64_t at, const uint8_t *from, uint64_t first, uint64_t count)
{
    const uint64_t head = min64(count, (8 - at % 8) % 8);
    if (head)
        bit_copy_byte(into, at, from, first, head);
    at += head, first += head, count -= head;
    const uint64_t shift = first % 8;
    for (; count >= 64; at += 64, first += 64, count -= 64) {
        uint64_t word = load64(from + first / 8) >> shift;
        if (shift)
            word |= (uint64_t)from[first / 8 + 8] << (64 - shift);
        store64(into + at / 8, word);
    }
    while (count) {
        const uint64_t part = min64(count, 8);
        bit_copy_byte(into, at, from, first, part);
        at += part, first += part, count -= part;
    }
}

/* Sets bits [at, at + count) of `into` to 1. */
static inline void bit_fill(uint8_t *into, uint64_t at, uint64_t count)
{
    while (count) {
        const uint64_t part = min64(count, 8 - at % 8);
        if (part == 8 && count >= 64) {
            memset(into + at / 8, 0xff, (size_t)(count / 8));
            at += count / 8 * 8, count %= 8;
            continue;
        }
        into[at / 8] |= (uint8_t)(((1u << part) - 1) << (at % 8));
        at += part, count -= part;
    }
}

#endif
