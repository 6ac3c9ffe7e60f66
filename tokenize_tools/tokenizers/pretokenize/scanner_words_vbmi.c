/* SPDX-License-Identifier: MIT */
/*
 * scanner_words_vbmi.c - the starts of pieces, eight words (512 bytes of text) at once, with AVX-512 and VBMI2; see
 * scanner_words_lanes.h. The shifts of VBMI2 (shldi, shrdi, shldv) shift two lanes as one number of 128 bits.
 */
#include "scanner_words.h"

#if defined(__x86_64__)
#define LANES_BYTES 64

#include "common/lanes.h"

typedef __mmask8 lane_mask;

/* Returns the lanes before the lanes of x: the last one of `before`, and all but the last one of x. */
LANES_INLINE __m512i rotated(lanes64 x, lanes64 before)
{
    return _mm512_alignr_epi64((__m512i)x, (__m512i)before, 7);
}

LANES_INLINE lanes64 up(lanes64 x, lanes64 before)
{
    return (lanes64)_mm512_shldi_epi64((__m512i)x, rotated(x, before), 1);
}

LANES_INLINE lanes64 up_by(lanes64 x, lanes64 before, uint32_t bits)
{
    return (lanes64)_mm512_shldv_epi64((__m512i)x, rotated(x, before), _mm512_set1_epi64(bits));
}

LANES_INLINE lanes64 add_all(lanes64 a, lanes64 b, uint32_t *carry)
{
    const __m512i sum = (__m512i)(a + b), ones = _mm512_set1_epi64(-1);
    const uint32_t full = _mm512_cmpeq_epi64_mask(sum, ones);
    const uint32_t over = (uint32_t)_mm512_cmplt_epu64_mask(sum, (__m512i)a) << 1 | *carry;
    const uint32_t again = (over + full) ^ full;
    *carry = again >> 8;
    return (lanes64)_mm512_mask_sub_epi64(sum, (__mmask8)again, sum, ones);
}

LANES_INLINE void store_lanes(uint64_t *words, lane_mask lanes, lanes64 x)
{
    _mm512_mask_storeu_epi64(words, lanes, (__m512i)x);
}

LANES_INLINE lanes64 load(const uint64_t *words, size_t i, lane_mask lanes)
{
    return (lanes64)_mm512_maskz_loadu_epi64(lanes, words + i);
}

LANES_INLINE lanes64 down(lanes64 x, const uint64_t *words, size_t i)
{
    return (lanes64)_mm512_shrdi_epi64((__m512i)x, _mm512_loadu_si512(words + i + 1), 1);
}

LANES_INLINE lane_mask lanes_at(const struct scan_work *w, size_t i)
{
    return (__mmask8)(w->words - i >= 8 ? 0xFF : (1u << (w->words - i)) - 1);
}

LANES_INLINE lanes64 valid_at(const struct scan_work *w, size_t i, uint64_t last)
{
    const __m512i all = _mm512_maskz_set1_epi64(lanes_at(w, i), -1);
    return (lanes64)(w->words - i > 8
                         ? all
                         : _mm512_mask_set1_epi64(all, (__mmask8)(1u << (w->words - i - 1)), (long long)last));
}

#define SCAN_WORDS_FUNCTION scan_words_vbmi
#include "scanner_words_lanes.h"

#endif
