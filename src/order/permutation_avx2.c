/* SPDX-License-Identifier: MIT */
/*
 * permutation_avx2.c - permutation_forward_many() and its inverse with 256-bit instructions: four numbers in a vector,
 * and eight vectors at a time. Each round waits for the one before; with two vectors at a time, the processor is idle
 * for more than half of the time.
 *
 * AVX2 multiplies only 32 bits by 32 bits. The round function's t = (x + key) * C is x * C + key * C, with key * C made
 * once. With x < 2^32 and C = C1 * 2^32 + C0, that is x * C0 + (x * C1 << 32) + key * C: two products. The second
 * factor needs three, and high(f, a) two; permutation_avx512.c explains the latter.
 *
 * Comparisons are signed. The numbers compared are below 2^63, because a * 2^h is at most 2^63.
 */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdbool.h>

#include "permutation_internal.h"

extern const struct permutation_kernels permutation_avx2;

enum { LANES = 4, GROUP = 8 };

struct round_constants {
    __m256i most, a, whole, mask, flip, keys[ROUNDS]; /* most: n - 1 */
    __m128i h, rest;                                  /* rest: 64 - h */
};

static inline __m256i all(uint64_t value)
{
    return _mm256_set1_epi64x((long long)value);
}

static inline void constants_set(struct round_constants *with, const uint64_t *state)
{
    with->most = all(state[STATE_N] - 1);
    with->a = all(state[STATE_A]);
    with->whole = all(state[STATE_A] > UINT32_MAX ? UINT64_MAX : 0);
    with->mask = all(((uint64_t)1 << state[STATE_H]) - 1);
    with->flip = all(state[STATE_FLIP]);
    with->h = _mm_cvtsi64_si128((long long)state[STATE_H]);
    with->rest = _mm_cvtsi64_si128((long long)(64 - state[STATE_H]));
    for (int round = 0; round < ROUNDS; round++)
        with->keys[round] = all(state[STATE_KEYS + round] * ROUND_FIRST);
}

static inline __m256i mixed(const struct round_constants *with, __m256i x, int round)
{
    const __m256i across = _mm256_slli_epi64(_mm256_mul_epu32(x, all(ROUND_FIRST >> 32)), 32);
    const __m256i low = _mm256_add_epi64(_mm256_mul_epu32(x, all(ROUND_FIRST)), with->keys[round]);
    const __m256i t = _mm256_add_epi64(low, across), upper = _mm256_srli_epi64(t, 32);
    const __m256i u = _mm256_xor_si256(t, upper); /* whose upper half is that of t */
    const __m256i mid =
        _mm256_add_epi64(_mm256_mul_epu32(u, all(ROUND_SECOND >> 32)), _mm256_mul_epu32(upper, all(ROUND_SECOND)));
    return _mm256_add_epi64(_mm256_mul_epu32(u, all(ROUND_SECOND)), _mm256_slli_epi64(mid, 32));
}

/* high(f, a) */
static inline __m256i scaled(const struct round_constants *with, __m256i f)
{
    const __m256i low = _mm256_srli_epi64(_mm256_mul_epu32(f, with->a), 32);
    const __m256i upper = _mm256_srli_epi64(f, 32);
    const __m256i sum = _mm256_add_epi64(_mm256_mul_epu32(upper, with->a), low);
    return _mm256_or_si256(_mm256_srli_epi64(sum, 32), _mm256_and_si256(upper, with->whole));
}

static inline __m256i flipped(const struct round_constants *with, __m256i x)
{
    return _mm256_xor_si256(x, _mm256_and_si256(with->flip, _mm256_cmpgt_epi64(all(2), x)));
}

/* Does one pass through the rounds for `vectors` vectors, a constant where it is called. The numbers that walk come
 * back in *out, and their bits in the result. */
static inline __attribute__((always_inline)) uint32_t pass(const struct round_constants *with, const uint64_t *in,
                                                           uint64_t *out, int vectors, bool inverse)
{
    __m256i l[GROUP], r[GROUP];
    uint32_t walking = 0;
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(in + v * LANES));
        if (inverse)
            x = flipped(with, x);
        l[v] = _mm256_srl_epi64(x, with->h);
        r[v] = _mm256_and_si256(x, with->mask);
    }
    for (int pair = 0; pair < ROUNDS; pair += 2) {
        const int even = inverse ? ROUNDS - 2 - pair : pair;
        if (inverse) {
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                r[v] = _mm256_xor_si256(r[v], _mm256_srl_epi64(mixed(with, l[v], even + 1), with->rest));
        }
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            const __m256i amount = scaled(with, mixed(with, r[v], even));
            if (inverse) {
                const __m256i less = _mm256_sub_epi64(l[v], amount);
                l[v] = _mm256_add_epi64(less, _mm256_and_si256(with->a, _mm256_cmpgt_epi64(amount, l[v])));
            } else {
                const __m256i more = _mm256_add_epi64(l[v], amount);
                l[v] = _mm256_sub_epi64(more, _mm256_andnot_si256(_mm256_cmpgt_epi64(with->a, more), with->a));
            }
        }
        if (!inverse) {
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                r[v] = _mm256_xor_si256(r[v], _mm256_srl_epi64(mixed(with, l[v], even + 1), with->rest));
        }
    }
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) {
        __m256i x = _mm256_or_si256(_mm256_sll_epi64(l[v], with->h), r[v]);
        walking |= (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(x, with->most))) << (v * LANES);
        if (!inverse)
            x = flipped(with, x);
        _mm256_storeu_si256((__m256i *)(void *)(out + v * LANES), x);
    }
    return walking;
}

#include "permutation_lanes.h"

const struct permutation_kernels permutation_avx2 = {"avx2", forward, inverse};
#endif
