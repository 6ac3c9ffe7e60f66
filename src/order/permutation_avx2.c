/* SPDX-License-Identifier: MIT */
/*
 * permutation_avx2.c - permutation_lanes.h with AVX2, which multiplies only 32 bits by 32 bits. The round function's
 * t = (x + key) * C is x * C + key * C, with key * C made once. With x < 2^32 and C = C1 * 2^32 + C0, that is
 * x * C0 + (x * C1 << 32) + key * C: two products. The second factor needs three.
 */
#if defined(__x86_64__)
#define LANES_BYTES 32
#include "common/lanes.h"
#include "permutation_internal.h"

static inline uint64_t key_of(uint64_t key)
{
    return key * ROUND_FIRST;
}

LANES_INLINE lanes64 mixed(lanes64 x, lanes64 key)
{
    const lanes64 across = lanes_multiply_halves(x, lanes_all(ROUND_FIRST >> 32)) << 32;
    const lanes64 t = lanes_multiply_halves(x, lanes_all(ROUND_FIRST)) + key + across, upper = t >> 32;
    const lanes64 u = t ^ upper; /* whose upper half is that of t */
    const lanes64 mid =
        lanes_multiply_halves(u, lanes_all(ROUND_SECOND >> 32)) + lanes_multiply_halves(upper, lanes_all(ROUND_SECOND));
    return lanes_multiply_halves(u, lanes_all(ROUND_SECOND)) + (mid << 32);
}

LANES_INLINE lanes64 unwrapped(lanes64 y, lanes64 x)
{
    return (lanes64)_mm256_blendv_pd((__m256d)y, (__m256d)x, (__m256d)y);
}

#define PERMUTATION_KERNELS permutation_avx2
#define PERMUTATION_NAME "avx2"
#include "permutation_lanes.h"
#endif
