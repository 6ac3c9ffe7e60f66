/* SPDX-License-Identifier: MIT */
/*
 * lanes.h - vectors of 64-bit lanes, so that an algorithm which is the same for several instruction sets is written
 * once: in X_lanes.h, which X_avx2.c, X_avx512.c (or X_vbmi.c), and perhaps X.c include. Each of these defines
 * LANES_BYTES before it includes this header: 64 for AVX-512, 32 for AVX2, or 8 for plain C, whose vectors are numbers.
 *
 * GCC and clang have the operators of C for vectors, and compile each of them to one instruction. A scalar operand
 * stands for a vector of equal lanes, and a comparison of vectors gives all bits of the lanes where it holds. So only
 * what C has no operator for is a function here. Nothing of it may be called unless the processor has the instructions
 * (cpu.h).
 *
 * Example: with AVX2 a `lanes64` has four lanes, and with AVX-512 eight.
 *     lanes64 sum = (lanes_load(a) ^ lanes_load(b)) + 7;
 *     lanes_store(into, sum & ~(lanes64)(sum == 9));
 */
#ifndef TOKMAP_COMMON_LANES_H
#define TOKMAP_COMMON_LANES_H

#include <stdbool.h>
#include <stdint.h>
#if LANES_BYTES > 8
#include <immintrin.h>
#endif

#define LANES_INLINE static inline __attribute__((always_inline))

/* Lanes of 64 or 32 bits. A cast from one type to the other changes only how operators take the same register. */
#if LANES_BYTES > 8
typedef uint64_t lanes64 __attribute__((vector_size(LANES_BYTES)));
typedef uint32_t lanes32 __attribute__((vector_size(LANES_BYTES)));
#else
typedef uint64_t lanes64;
#endif

#if LANES_BYTES == 64
#define LANES_INTRINSIC(name) _mm512_##name
typedef __m512i lanes_register;
typedef __m256i_u lanes_half; /* at any address */
#elif LANES_BYTES == 32
#define LANES_INTRINSIC(name) _mm256_##name
typedef __m256i lanes_register;
typedef __m128i_u lanes_half;
#endif

LANES_INLINE lanes64 lanes_load(const void *from)
{
    typedef lanes64 anywhere __attribute__((aligned(1), may_alias));
    return *(const anywhere *)from;
}

LANES_INLINE void lanes_store(void *into, lanes64 lanes)
{
    typedef lanes64 anywhere __attribute__((aligned(1), may_alias));
    *(anywhere *)into = lanes;
}

LANES_INLINE lanes64 lanes_all(uint64_t value)
{
    const lanes64 none = {0};
    return none + value;
}

/* Returns true if a bit of the vector is set. */
LANES_INLINE bool lanes_any(lanes64 lanes)
{
#if LANES_BYTES == 64
    return _mm512_test_epi64_mask((__m512i)lanes, (__m512i)lanes) != 0;
#elif LANES_BYTES == 32
    return !_mm256_testz_si256((__m256i)lanes, (__m256i)lanes);
#else
    return lanes != 0;
#endif
}

#if LANES_BYTES > 8
/* Returns the first LANES_BYTES / 2 bytes as numbers of 32 bits, each from one of 16. */
LANES_INLINE lanes64 lanes_load_widened(const void *from)
{
    return (lanes64)LANES_INTRINSIC(cvtepu16_epi32)(*(const lanes_half *)from);
}

/* Returns the products of the low halves of lanes. */
LANES_INLINE lanes64 lanes_multiply_halves(lanes64 a, lanes64 b)
{
    return (lanes64)LANES_INTRINSIC(mul_epu32)((lanes_register)a, (lanes_register)b);
}

/* Returns a * b, which takes AVX2 three products of halves. The high halves of what stays the same in a loop are
 * computed once before it. */
LANES_INLINE lanes64 lanes_multiply(lanes64 a, lanes64 b)
{
#if LANES_BYTES == 64
    return (lanes64)_mm512_mullo_epi64((__m512i)a, (__m512i)b);
#else
    const lanes64 cross = lanes_multiply_halves(a >> 32, b) + lanes_multiply_halves(a, b >> 32);
    return lanes_multiply_halves(a, b) + (cross << 32);
#endif
}

/* Returns the lesser ones of numbers with a sign. */
LANES_INLINE lanes64 lanes_lesser(lanes64 a, lanes64 b)
{
#if LANES_BYTES == 64
    return (lanes64)_mm512_min_epi64((__m512i)a, (__m512i)b);
#else
    return (lanes64)_mm256_blendv_epi8((__m256i)a, (__m256i)b, _mm256_cmpgt_epi64((__m256i)a, (__m256i)b));
#endif
}

/* Returns bits of the lanes where a > b, as numbers with a sign: bit i is that of lane i. */
LANES_INLINE uint32_t lanes_greater(lanes64 a, lanes64 b)
{
#if LANES_BYTES == 64
    return _mm512_cmpgt_epi64_mask((__m512i)a, (__m512i)b);
#else
    return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64((__m256i)a, (__m256i)b)));
#endif
}

/* Returns the larger ones of ids, which have 32 bits if `wide`, else 16. */
LANES_INLINE lanes64 lanes_larger_ids(lanes64 a, lanes64 b, bool wide)
{
    return wide ? (lanes64)LANES_INTRINSIC(max_epu32)((lanes_register)a, (lanes_register)b)
                : (lanes64)LANES_INTRINSIC(max_epu16)((lanes_register)a, (lanes_register)b);
}

/* Returns the largest id of a vector. */
LANES_INLINE uint32_t lanes_largest_id(lanes64 ids, bool wide)
{
    if (!wide)
        ids = lanes_larger_ids((lanes64)((lanes32)ids >> 16), (lanes64)((lanes32)ids & 0xffff), true);
#if LANES_BYTES == 64
    return _mm512_reduce_max_epu32((__m512i)ids);
#else
    const lanes32 found = (lanes32)ids;
    uint32_t largest = 0;
    for (int i = 0; i < LANES_BYTES / 4; i++)
        largest = found[i] > largest ? found[i] : largest;
    return largest;
#endif
}
#endif

#endif
