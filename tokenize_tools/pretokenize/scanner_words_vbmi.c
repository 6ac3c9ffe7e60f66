/* SPDX-License-Identifier: MIT */
/*
 * scanner_words_vbmi.c - the starts of pieces, eight words (512 bytes of text) at once, with AVX-512 and VBMI2; see
 * scanner_words_lanes.h. The shifts of VBMI2 (shldi, shrdi, shldv) shift two lanes as one number of 128 bits.
 */
#include "scanner_words_work.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))
#define VECTOR(name) INLINE vector name
#define LANES 8

typedef __m512i vector;
typedef __mmask8 lane_mask;

VECTOR(up)(vector x, vector before)
{
    return _mm512_shldi_epi64(x, _mm512_alignr_epi64(x, before, 7), 1);
}

VECTOR(up_by)(vector x, vector before, uint32_t bits)
{
    return _mm512_shldv_epi64(x, _mm512_alignr_epi64(x, before, 7), _mm512_set1_epi64(bits));
}

VECTOR(and_all)(vector a, vector b)
{
    return _mm512_and_si512(a, b);
}

VECTOR(or_all)(vector a, vector b)
{
    return _mm512_or_si512(a, b);
}

VECTOR(without)(vector a, vector b)
{
    return _mm512_andnot_si512(b, a);
}

INLINE bool any(vector x)
{
    return _mm512_test_epi64_mask(x, x) != 0;
}

VECTOR(add_all)(vector a, vector b, uint32_t *carry)
{
    const vector sum = _mm512_add_epi64(a, b), ones = _mm512_set1_epi64(-1);
    const uint32_t full = _mm512_cmpeq_epi64_mask(sum, ones);
    const uint32_t over = (uint32_t)_mm512_cmplt_epu64_mask(sum, a) << 1 | *carry;
    const uint32_t again = (over + full) ^ full;
    *carry = again >> 8;
    return _mm512_mask_sub_epi64(sum, (__mmask8)again, sum, ones);
}

VECTOR(xor_all)(vector a, vector b)
{
    return _mm512_xor_si512(a, b);
}

VECTOR(zeros)(void)
{
    return _mm512_setzero_si512();
}

VECTOR(load_all)(const uint64_t *words)
{
    return _mm512_loadu_si512(words);
}

INLINE void store(uint64_t *words, vector x)
{
    _mm512_storeu_si512(words, x);
}

INLINE void store_lanes(uint64_t *words, lane_mask lanes, vector x)
{
    _mm512_mask_storeu_epi64(words, lanes, x);
}

VECTOR(load)(const uint64_t *words, size_t i, lane_mask lanes)
{
    return _mm512_maskz_loadu_epi64(lanes, words + i);
}

VECTOR(down)(vector x, const uint64_t *words, size_t i)
{
    return _mm512_shrdi_epi64(x, _mm512_loadu_si512(words + i + 1), 1);
}

INLINE lane_mask lanes_at(const struct scan_work *w, size_t i)
{
    return (__mmask8)(w->words - i >= 8 ? 0xFF : (1u << (w->words - i)) - 1);
}

VECTOR(valid_at)(const struct scan_work *w, size_t i, uint64_t last)
{
    const vector all = _mm512_maskz_set1_epi64(lanes_at(w, i), -1);
    return w->words - i > 8 ? all : _mm512_mask_set1_epi64(all, (__mmask8)(1u << (w->words - i - 1)), (long long)last);
}

#include "scanner_words_lanes.h"

void scan_words_vbmi(struct scan_work *w, const struct scan_masks *masks, uint64_t valid)
{
    split_all(w, masks, valid);
    start_all(w, masks, valid);
}

#endif
