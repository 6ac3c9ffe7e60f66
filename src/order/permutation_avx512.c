/* SPDX-License-Identifier: MIT */
/*
 * permutation_avx512.c - permutation_lanes.h with AVX-512. What wraps is the larger one of two unsigned numbers.
 */
#if defined(__x86_64__)
#define LANES_BYTES 64
#include "common/lanes.h"
#include "permutation_internal.h"

static inline uint64_t key_of(uint64_t key)
{
    return key;
}

LANES_INLINE lanes64 mixed(lanes64 x, lanes64 key)
{
    const lanes64 t = lanes_multiply(x + key, lanes_all(ROUND_FIRST));
    return lanes_multiply(t ^ t >> 32, lanes_all(ROUND_SECOND));
}

LANES_INLINE lanes64 unwrapped(lanes64 y, lanes64 x)
{
    return (lanes64)_mm512_min_epu64((__m512i)y, (__m512i)x);
}

#define PERMUTATION_KERNELS permutation_avx512
#define PERMUTATION_NAME "avx512"
#include "permutation_lanes.h"
#endif
