/* SPDX-License-Identifier: MIT */
/* code_search_avx2.c - characters of a set among 64 bytes of text with AVX2, in two halves; see code_search.c. */
#include "code_search.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))
#define TABLES 8 /* of 16 bytes: search->three */

struct tables {
    __m256i steps[TABLES], two[2];
};

INLINE __m256i load(const uint8_t *at)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

INLINE __m256i table_at(const uint8_t *table)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
}

INLINE uint64_t both(__m256i a, __m256i b)
{
    return (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

INLINE __m256i at_least(__m256i bytes, uint8_t least)
{
    return _mm256_cmpeq_epi8(_mm256_max_epu8(bytes, _mm256_set1_epi8((char)least)), bytes);
}

/* Makes the tables. A shuffle looks up one of 16 entries, and gives 0 for an index with bit 7 set. So an index takes
 * part until its own table has come, if 16 is subtracted for each table, and differences (xor) of neighboring tables
 * add up to it. */
INLINE void tables_make(struct tables *tables, const struct code_search *search)
{
    __m256i before = _mm256_setzero_si256();
    for (int i = 0; i < TABLES; i++) {
        const __m256i table = table_at(search->three + 16 * i);
        tables->steps[i] = _mm256_xor_si256(table, before);
        before = table;
    }
    tables->two[0] = table_at(search->two);
    tables->two[1] = table_at(search->two + 16);
}

/* Bit 7 of each first byte of a character of two bytes that may be in the set. */
INLINE __m256i doubtful_two(const struct tables *tables, __m256i bytes)
{
    const __m256i lower = _mm256_and_si256(bytes, _mm256_set1_epi8(15));
    return _mm256_blendv_epi8(_mm256_shuffle_epi8(tables->two[0], lower), _mm256_shuffle_epi8(tables->two[1], lower),
                              _mm256_slli_epi16(bytes, 3)); /* bit 4 chooses the table */
}

/* Returns all bits of each first byte of a character of three bytes that is not. */
INLINE __m256i absent_three(const struct tables *tables, __m256i bytes, __m256i second)
{
    const __m256i powers = _mm256_set1_epi64x((long long)0x8040201008040201), seven = _mm256_set1_epi8(7);
    const __m256i row = _mm256_and_si256(_mm256_slli_epi16(bytes, 3), _mm256_set1_epi8(0x78));
    __m256i index = _mm256_or_si256(row, _mm256_and_si256(_mm256_srli_epi16(second, 3), seven));
    __m256i bits = _mm256_shuffle_epi8(tables->steps[0], index);
#pragma GCC unroll 8
    for (int i = 1; i < TABLES; i++) {
        index = _mm256_sub_epi8(index, _mm256_set1_epi8(16));
        bits = _mm256_xor_si256(bits, _mm256_shuffle_epi8(tables->steps[i], index));
    }
    const __m256i bit = _mm256_shuffle_epi8(powers, _mm256_and_si256(second, seven));
    return _mm256_cmpeq_epi8(_mm256_and_si256(bits, bit), _mm256_setzero_si256());
}

/* Returns the bits of the bytes of ASCII that are in the set. */
INLINE __m256i ascii_of(__m256i rows, __m256i bytes)
{
    const __m256i powers = _mm256_set1_epi64x((long long)0x8040201008040201);
    const __m256i row = _mm256_shuffle_epi8(rows, bytes); /* 0 for bytes from 0x80 on */
    const __m256i bit = _mm256_shuffle_epi8(powers, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(7)));
    return _mm256_cmpeq_epi8(_mm256_and_si256(row, bit), bit);
}

INLINE uint64_t find(const struct code_search *search, const uint8_t *text, size_t *at, size_t count, bool ascii)
{
    struct tables tables;
    tables_make(&tables, search);
    const __m256i rows = table_at(search->ascii_rows);
    for (; count - *at >= CODE_SEARCH_BYTES; *at += 64) {
        const uint8_t *block = text + *at;
        const __m256i one = load(block), two = load(block + 32);
        uint64_t found = ascii ? both(ascii_of(rows, one), ascii_of(rows, two)) : 0;
        const uint64_t high = both(one, two);
        if (!(found | high))
            continue;
        if (high) {
            const uint64_t wide = both(at_least(one, 0xC0), at_least(two, 0xC0));
            const uint64_t tall = both(at_least(one, 0xE0), at_least(two, 0xE0));
            const uint64_t taller = both(at_least(one, 0xF0), at_least(two, 0xF0));
            uint64_t doubtful = taller;
            if (wide & ~tall)
                doubtful |= wide & ~tall & both(doubtful_two(&tables, one), doubtful_two(&tables, two));
            if (tall)
                doubtful |= tall & ~both(absent_three(&tables, one, load(block + 1)),
                                         absent_three(&tables, two, load(block + 33)));
            found |= doubtful ? code_search_each(search->set, block, doubtful) : 0;
        }
        if (found)
            return found;
    }
    return 0;
}

uint64_t code_search_avx2(const struct code_search *search, const uint8_t *text, size_t *at, size_t count)
{
    return search->any_ascii ? find(search, text, at, count, true) : find(search, text, at, count, false);
}

#endif
