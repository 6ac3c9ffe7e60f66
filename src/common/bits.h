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

/* Returns how many of the bits [first, end) are 1, without an instruction that some processors lack: of each byte, then
 * of the bytes of up to 31 words, whose counts fit one byte. */
static inline uint64_t bits_ones(const uint64_t *bits, uint64_t first, uint64_t end)
{
    const uint64_t twos = UINT64_C(0x3333333333333333), fours = UINT64_C(0x0f0f0f0f0f0f0f0f);
    uint64_t all = 0;
    for (uint64_t word = first / 64, last = (end - 1) / 64; word <= last;) {
        uint64_t bytes = 0;
        for (const uint64_t part = word; word <= last && word < part + 31; word++) {
            uint64_t x = bits[word];
            if (word == first / 64 || word == last)
                x &= bits_of_word(word, first, end);
            x -= x >> 1 & UINT64_C(0x5555555555555555);
            x = (x & twos) + (x >> 2 & twos);
            bytes += (x + (x >> 4)) & fours;
        }
        const uint64_t pairs = (bytes & UINT64_C(0x00ff00ff00ff00ff)) + (bytes >> 8 & UINT64_C(0x00ff00ff00ff00ff));
        all += pairs * UINT64_C(0x0001000100010001) >> 48;
    }
    return all;
}

#endif
