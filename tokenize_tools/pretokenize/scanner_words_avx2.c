/* SPDX-License-Identifier: MIT */
/*
 * scanner_words_avx2.c - the starts of pieces, four words (256 bytes of text) at once, with AVX2; see
 * scanner_words_lanes.h. AVX2 has no masks of lanes, so the carries of an addition go through four bits of a scalar
 * register and come back from a table.
 */
#include "scanner_words_work.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))
#define VECTOR(name) INLINE vector name
#define LANES 4

typedef __m256i vector;
typedef __m256i lane_mask; /* all bits of the chosen lanes */

/* Row n has all bits of the lanes that n has bits for. */
#define ROW(n)                                                                                                         \
    {                                                                                                                  \
        (n) & 1 ? -1 : 0, (n)&2 ? -1 : 0, (n)&4 ? -1 : 0, (n)&8 ? -1 : 0                                               \
    }
static const int64_t lane_rows[16][LANES]
    __attribute__((aligned(32))) = {ROW(0), ROW(1), ROW(2),  ROW(3),  ROW(4),  ROW(5),  ROW(6),  ROW(7),
                                    ROW(8), ROW(9), ROW(10), ROW(11), ROW(12), ROW(13), ROW(14), ROW(15)};

INLINE lane_mask chosen(uint32_t bits)
{
    return _mm256_load_si256((const __m256i *)(const void *)lane_rows[bits]);
}

INLINE uint32_t bits_of(vector lanes)
{
    return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(lanes));
}

/* Returns the lanes before the lanes of x: the last one of `before`, and all but the last one of x. */
VECTOR(rotated)(vector x, vector before)
{
    return _mm256_alignr_epi8(x, _mm256_permute2x128_si256(before, x, 0x21), 8);
}

VECTOR(and_all)(vector a, vector b)
{
    return _mm256_and_si256(a, b);
}

VECTOR(or_all)(vector a, vector b)
{
    return _mm256_or_si256(a, b);
}

VECTOR(xor_all)(vector a, vector b)
{
    return _mm256_xor_si256(a, b);
}

VECTOR(without)(vector a, vector b)
{
    return _mm256_andnot_si256(b, a);
}

VECTOR(zeros)(void)
{
    return _mm256_setzero_si256();
}

INLINE bool any(vector x)
{
    return !_mm256_testz_si256(x, x);
}

VECTOR(up)(vector x, vector before)
{
    return or_all(_mm256_slli_epi64(x, 1), _mm256_srli_epi64(rotated(x, before), 63));
}

VECTOR(up_by)(vector x, vector before, uint32_t bits)
{
    const __m128i left = _mm_cvtsi32_si128((int)bits), right = _mm_cvtsi32_si128(64 - (int)bits);
    return or_all(_mm256_sll_epi64(x, left), _mm256_srl_epi64(rotated(x, before), right));
}

VECTOR(load_all)(const uint64_t *words)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)words);
}

VECTOR(load)(const uint64_t *words, size_t i, lane_mask lanes)
{
    return and_all(load_all(words + i), lanes);
}

INLINE void store(uint64_t *words, vector x)
{
    _mm256_storeu_si256((__m256i *)(void *)words, x);
}

INLINE void store_lanes(uint64_t *words, lane_mask lanes, vector x)
{
    (void)lanes;
    store(words, x);
}

VECTOR(down)(vector x, const uint64_t *words, size_t i)
{
    return or_all(_mm256_srli_epi64(x, 1), _mm256_slli_epi64(load_all(words + i + 1), 63));
}

VECTOR(add_all)(vector a, vector b, uint32_t *carry)
{
    const vector sum = _mm256_add_epi64(a, b), sign = _mm256_set1_epi64x(INT64_MIN);
    const uint32_t full = bits_of(_mm256_cmpeq_epi64(sum, _mm256_set1_epi64x(-1)));
    const uint32_t over = bits_of(_mm256_cmpgt_epi64(xor_all(a, sign), xor_all(sum, sign))) << 1 | *carry;
    const uint32_t again = (over + full) ^ full;
    *carry = again >> LANES;
    return _mm256_sub_epi64(sum, chosen(again & 15));
}

INLINE lane_mask lanes_at(const struct scan_work *w, size_t i)
{
    return chosen(w->words - i >= LANES ? 15 : (1u << (w->words - i)) - 1);
}

VECTOR(valid_at)(const struct scan_work *w, size_t i, uint64_t last)
{
    if (w->words - i > LANES)
        return chosen(15);
    const uint32_t at = 1u << (w->words - i - 1);
    return or_all(chosen(at - 1), and_all(chosen(at), _mm256_set1_epi64x((long long)last)));
}

#include "scanner_words_lanes.h"

void scan_words_avx2(struct scan_work *w, const struct scan_masks *masks, uint64_t valid)
{
    split_all(w, masks, valid);
    start_all(w, masks, valid);
}

#endif
