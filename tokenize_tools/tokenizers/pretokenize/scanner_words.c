/* SPDX-License-Identifier: MIT */
/*
 * scanner_words.c - turns masks of classes into starts of pieces, one word (64 bytes of text) after another, in plain
 * C: scanner_words_lanes.h with vectors of one lane. scanner.c explains the method with an example.
 */
#define LANES_BYTES 8
#include "common/lanes.h"
#include "scanner_words.h"

typedef bool lane_mask; /* true */

LANES_INLINE lanes64 up_by(lanes64 x, lanes64 before, uint32_t bytes)
{
    return x << bytes | before >> (64 - bytes);
}

LANES_INLINE lanes64 up(lanes64 x, lanes64 before)
{
    return up_by(x, before, 1);
}

LANES_INLINE lanes64 down(lanes64 x, const uint64_t *words, size_t i)
{
    return x >> 1 | words[i + 1] << 63;
}

LANES_INLINE lanes64 add_all(lanes64 a, lanes64 b, uint32_t *carry)
{
    return add_carry(a, b, carry);
}

LANES_INLINE lane_mask lanes_at(const struct scan_work *w, size_t i)
{
    return i < w->words;
}

LANES_INLINE lanes64 valid_at(const struct scan_work *w, size_t i, uint64_t last)
{
    return w->words - i > 1 ? ~(uint64_t)0 : last;
}

LANES_INLINE lanes64 load(const uint64_t *words, size_t i, lane_mask lanes)
{
    (void)lanes;
    return words[i];
}

LANES_INLINE void store_lanes(uint64_t *words, lane_mask lanes, lanes64 x)
{
    (void)lanes;
    *words = x;
}

#define SCAN_WORDS_FUNCTION scan_words_scalar
#include "scanner_words_lanes.h"

scan_words_function *scan_words_choose(enum cpu_variant variant)
{
#if defined(__x86_64__)
    if (variant == CPU_VBMI)
        return scan_words_vbmi;
    if (variant >= CPU_AVX2)
        return scan_words_avx2;
#endif
    return scan_words_scalar;
}
