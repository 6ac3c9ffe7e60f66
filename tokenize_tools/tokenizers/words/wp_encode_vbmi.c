/* SPDX-License-Identifier: MIT */
/* wp_encode_vbmi.c - words of 64 ASCII characters at once with AVX-512: two lookups for each byte, then what is not
 * part of a word is squeezed out. */
#include "wp_encode.h"

#if defined(__x86_64__)

#include <immintrin.h>

size_t wp_ascii_vbmi(const struct wp_characters *characters, const uint8_t *text, size_t count, struct wp_words *words)
{
    const uint64_t there = count >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << count) - 1;
    const __m512i bytes = _mm512_maskz_loadu_epi8(there, text);
    const uint64_t wide = _mm512_movepi8_mask(bytes) | ~there;
    const uint64_t ascii = wide ? ((wide & -wide) - 1) : ~(uint64_t)0;
    const __m512i is = _mm512_permutex2var_epi8(_mm512_loadu_si512(characters->ascii_is), bytes,
                                                _mm512_loadu_si512(characters->ascii_is + 64));
    const __m512i put = _mm512_permutex2var_epi8(_mm512_loadu_si512(characters->ascii_put), bytes,
                                                 _mm512_loadu_si512(characters->ascii_put + 64));
    const uint64_t kept = ascii & _mm512_test_epi8_mask(is, _mm512_set1_epi8(WP_ASCII_WORD));
    const uint64_t dropped = ascii & _mm512_test_epi8_mask(is, _mm512_set1_epi8(WP_ASCII_DROP));
    uint64_t alone = ascii & _mm512_test_epi8_mask(is, _mm512_set1_epi8(WP_ASCII_ALONE)), left = kept, used = ascii;
    if (dropped) { /* as if they were not there */
        left = _pext_u64(kept, ~dropped);
        alone = _pext_u64(alone, ~dropped);
        used = _pext_u64(ascii, ~dropped);
    }
    const uint64_t in_word = left & ~alone;
    const uint64_t starts = alone | (in_word & ~(in_word << 1 | (uint64_t)words->open));
    words->starts = _pext_u64(starts, left);
    words->made = (uint32_t)__builtin_popcountll(kept);
    _mm512_storeu_si512(words->into, _mm512_maskz_compress_epi8(kept, put));
    if (used)
        words->open = in_word >> (63 - __builtin_clzll(used)) & 1;
    return ascii == ~(uint64_t)0 ? 64 : (size_t)__builtin_popcountll(ascii);
}

#endif
