/* SPDX-License-Identifier: MIT */
/*
 * word_grams_vbmi.c - words of 64 bytes of text at a time: a table of 128 bytes maps them, what is deleted and blanks
 * after blanks are pressed out, and the places after the blanks that stay are where words begin.
 */
#include "word_grams.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* Ends words after the bytes whose bits are set. Bit 0 stands for the byte at `base`. */
static inline void words_end(struct word_grams *grams, uint64_t ends, uint64_t base)
{
    uint8_t places[64], places_of_all[64];
    for (int i = 0; i < 64; i++)
        places_of_all[i] = (uint8_t)i;
    const uint32_t count = (uint32_t)__builtin_popcountll(ends);
    const __m512i after = _mm512_set1_epi64((int64_t)base + 1);
    uint64_t *begins = grams->begins + grams->count + 1;
    _mm512_storeu_si512(places, _mm512_maskz_compress_epi8(ends, _mm512_loadu_si512(places_of_all)));
    for (uint32_t i = 0; i < count; i += 8)
        _mm512_storeu_si512(begins + i,
                            _mm512_add_epi64(_mm512_cvtepu8_epi64(_mm_loadl_epi64((const void *)(places + i))), after));
    if (count)
        grams->begin = begins[count - 1];
    grams->count += count;
}

uint64_t words_add_vbmi(struct word_grams *grams, const uint8_t map[128], const uint8_t *text, uint64_t count)
{
    const __m512i low = _mm512_loadu_si512(map), high = _mm512_loadu_si512(map + 64);
    struct bytes_buffer *words = &grams->words;
    uint64_t at = 0;
    while (at < count && words->capacity - words->count >= 2 * GRAM_SLACK) {
        const uint64_t left = count - at, there = left < 64 ? ((uint64_t)1 << left) - 1 : UINT64_MAX;
        const __m512i bytes = _mm512_maskz_loadu_epi8(there, text + at);
        const __m512i mapped = _mm512_permutex2var_epi8(low, bytes, high);
        const uint64_t other =
            (_mm512_movepi8_mask(bytes) | _mm512_cmpeq_epi8_mask(mapped, _mm512_set1_epi8(GRAM_OTHER))) & there;
        const uint64_t used = other ? (other & -other) - 1 : there;
        const uint64_t kept = used & ~_mm512_cmpeq_epi8_mask(mapped, _mm512_set1_epi8(GRAM_DELETED));
        const __m512i some = kept == used ? mapped : _mm512_maskz_compress_epi8(kept, mapped);
        const uint64_t all = _bzhi_u64(UINT64_MAX, (uint32_t)__builtin_popcountll(kept));
        const uint64_t blanks = _mm512_cmpeq_epi8_mask(some, _mm512_set1_epi8(GRAM_BLANK)) & all;
        const uint64_t none = blanks & (blanks << 1 | (words->count == grams->begin)), stay = all & ~none;
        uint8_t *to = words->bytes + words->count;
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(stay, some));
        words_end(grams, _pext_u64(blanks & stay, stay), words->count);
        words->count += (uint32_t)__builtin_popcountll(stay);
        at += (uint32_t)__builtin_popcountll(used);
        if (word_grams_are_many(grams))
            word_grams_full(grams, words->bytes + words->count);
        if (other || grams->ended)
            break;
    }
    return at;
}
#endif
