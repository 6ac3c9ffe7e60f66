/* SPDX-License-Identifier: MIT */
/* code_search_vbmi.c - characters of a set among 64 bytes of text with AVX-512 and VBMI; see code_search.c. */
#include "code_search.h"

#if defined(__x86_64__)

#include <immintrin.h>

static inline __attribute__((always_inline)) uint64_t find(const struct code_search *search, const uint8_t *text,
                                                           size_t *at, size_t count, bool ascii)
{
    const __m512i low = _mm512_loadu_si512(search->three), high = _mm512_loadu_si512(search->three + 64);
    const __m512i four = _mm512_loadu_si512(search->four), two = _mm512_loadu_si512(search->two);
    const __m512i ascii_low = _mm512_loadu_si512(search->ascii), ascii_high = _mm512_loadu_si512(search->ascii + 64);
    const __m512i powers = _mm512_set1_epi64((long long)0x8040201008040201), seven = _mm512_set1_epi8(7);
    for (; count - *at >= CODE_SEARCH_BYTES; *at += 64) {
        const __m512i bytes = _mm512_loadu_si512(text + *at);
        const uint64_t wide = _mm512_cmpge_epu8_mask(bytes, _mm512_set1_epi8((char)0xC0));
        uint64_t found = 0;
        if (ascii)
            found = _mm512_movepi8_mask(_mm512_permutex2var_epi8(ascii_low, bytes, ascii_high)) &
                    ~_mm512_movepi8_mask(bytes);
        if (!(wide | found))
            continue;
        if (wide) {
            const __m512i second = _mm512_loadu_si512(text + *at + 1);
            const uint64_t tall = _mm512_cmpge_epu8_mask(bytes, _mm512_set1_epi8((char)0xE0));
            const uint64_t taller = _mm512_cmpge_epu8_mask(bytes, _mm512_set1_epi8((char)0xF0));
            /* Bytes have no shifts: shifts of 16 bits, without what comes from the neighbor. */
            const __m512i row = _mm512_and_si512(_mm512_slli_epi16(bytes, 3), _mm512_set1_epi8(0x78));
            const __m512i eighth = _mm512_and_si512(_mm512_srli_epi16(second, 3), seven);
            const __m512i bit = _mm512_shuffle_epi8(powers, _mm512_and_si512(second, seven));
            const __m512i bits = _mm512_permutex2var_epi8(low, _mm512_or_si512(row, eighth), high);
            uint64_t doubtful = (wide & ~tall & _mm512_movepi8_mask(_mm512_permutexvar_epi8(bytes, two))) |
                                (tall & ~taller & _mm512_test_epi8_mask(bits, bit));
            if (taller) {
                const uint64_t row_four = _mm512_test_epi8_mask(_mm512_permutexvar_epi8(eighth, four), bit);
                doubtful |= taller & (row_four | ~_mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8((char)0xF0)));
            }
            found |= doubtful ? code_search_each(search->set, text + *at, doubtful) : 0;
        }
        if (found)
            return found;
    }
    return 0;
}

uint64_t code_search_vbmi(const struct code_search *search, const uint8_t *text, size_t *at, size_t count)
{
    return search->any_ascii ? find(search, text, at, count, true) : find(search, text, at, count, false);
}

#endif
