/* SPDX-License-Identifier: MIT */
/*
 * scanner_words_avx2.c - the starts of pieces, four words (256 bytes of text) at once, with AVX2; see
 * scanner_words_lanes.h. AVX2 has no masks of lanes, so the carries of an addition go through four bits of a scalar
 * register and come back from a table.
 */
#include "scanner_words.h"

#if defined(__x86_64__)
#define LANES_BYTES 32

#include "common/lanes.h"

typedef lanes64 lane_mask; /* all bits of the chosen lanes */

/* Row n has all bits of the lanes that n has bits for. */
#define ROW(n)                                                                                                         \
    {                                                                                                                  \
        (n) & 1 ? -1 : 0, (n)&2 ? -1 : 0, (n)&4 ? -1 : 0, (n)&8 ? -1 : 0                                               \
    }
static const int64_t lane_rows[16][4]
    __attribute__((aligned(32))) = {ROW(0), ROW(1), ROW(2),  ROW(3),  ROW(4),  ROW(5),  ROW(6),  ROW(7),
                                    ROW(8), ROW(9), ROW(10), ROW(11), ROW(12), ROW(13), ROW(14), ROW(15)};

LANES_INLINE lane_mask chosen(uint32_t bits)
{
    return lanes_load(lane_rows[bits]);
}

LANES_INLINE uint32_t bits_of(lanes64 lanes)
{
    return (uint32_t)_mm256_movemask_pd((__m256d)lanes);
}

/* Returns the lanes before the lanes of x: the last one of `before`, and all but the last one of x. */
LANES_INLINE lanes64 rotated(lanes64 x, lanes64 before)
{
    const __m256i middle = _mm256_permute2x128_si256((__m256i)before, (__m256i)x, 0x21);
    return (lanes64)_mm256_alignr_epi8((__m256i)x, middle, 8);
}

LANES_INLINE lanes64 up(lanes64 x, lanes64 before)
{
    return x << 1 | rotated(x, before) >> 63;
}

LANES_INLINE lanes64 up_by(lanes64 x, lanes64 before, uint32_t bits)
{
    return x << bits | rotated(x, before) >> (64 - bits);
}

LANES_INLINE lanes64 load(const uint64_t *words, size_t i, lane_mask lanes)
{
    return lanes_load(words + i) & lanes;
}

LANES_INLINE void store_lanes(uint64_t *words, lane_mask lanes, lanes64 x)
{
    (void)lanes;
    lanes_store(words, x);
}

LANES_INLINE lanes64 down(lanes64 x, const uint64_t *words, size_t i)
{
    return x >> 1 | lanes_load(words + i + 1) << 63;
}

LANES_INLINE lanes64 add_all(lanes64 a, lanes64 b, uint32_t *carry)
{
    const lanes64 sum = a + b;
    const uint32_t full = bits_of((lanes64)(sum == UINT64_MAX)), over = bits_of((lanes64)(a > sum)) << 1 | *carry;
    const uint32_t again = (over + full) ^ full;
    *carry = again >> 4;
    return sum - chosen(again & 15);
}

LANES_INLINE lane_mask lanes_at(const struct scan_work *w, size_t i)
{
    return chosen(w->words - i >= 4 ? 15 : (1u << (w->words - i)) - 1);
}

LANES_INLINE lanes64 valid_at(const struct scan_work *w, size_t i, uint64_t last)
{
    if (w->words - i > 4)
        return chosen(15);
    const uint32_t at = 1u << (w->words - i - 1);
    return chosen(at - 1) | (chosen(at) & last);
}

#define SCAN_WORDS_FUNCTION scan_words_avx2
#include "scanner_words_lanes.h"

#endif
