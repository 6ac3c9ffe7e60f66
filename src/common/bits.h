/* SPDX-License-Identifier: MIT */
/* bits.h - ranges of bits in an array of words: bit i is bit i mod 64 of word i / 64. first < end in all functions. */
#ifndef TOKMAP_COMMON_BITS_H
#define TOKMAP_COMMON_BITS_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the bits of a word that are in [first, end), where the word has some of them. */
static inline uint64_t bits_of_word(uint64_t word, uint64_t first, uint64_t end)
{
    uint64_t mask = ~(uint64_t)0;
    if (word == first / 64)
        mask &= ~(uint64_t)0 << (first % 64);
    if (word == (end - 1) / 64)
        mask &= ~(uint64_t)0 >> (63 - (end - 1) % 64);
    return mask;
}

/* Returns whether bits [first, end) are all 1. */
static inline bool bits_all(const uint64_t *bits, uint64_t first, uint64_t end)
{
    const uint64_t last = (end - 1) / 64, high = ~(uint64_t)0 >> (63 - (end - 1) % 64);
    uint64_t word = first / 64, mask = ~(uint64_t)0 << (first % 64);
    for (; word < last; word++, mask = ~(uint64_t)0)
        if (~bits[word] & mask)
            return false;
    return !(~bits[word] & mask & high);
}

static inline void bits_set(uint64_t *bits, uint64_t first, uint64_t end)
{
    for (uint64_t word = first / 64; word <= (end - 1) / 64; word++)
        bits[word] |= bits_of_word(word, first, end);
}

static inline void bits_clear(uint64_t *bits, uint64_t first, uint64_t end)
{
    for (uint64_t word = first / 64; word <= (end - 1) / 64; word++)
        bits[word] &= ~bits_of_word(word, first, end);
}

#endif
