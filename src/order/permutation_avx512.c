/* SPDX-License-Identifier: MIT */
/*
 * permutation_avx512.c - permutation_forward_many() and its inverse with 512-bit instructions: eight numbers in a
 * vector, and four vectors at a time, because each round waits for the one before and the processor has time for more.
 *
 * high(f, a), of which AVX-512 has no instruction, with the halves of f = f1 * 2^32 + f0:
 *      floor((f1 * a + floor(f0 * a / 2^32)) / 2^32)
 * The sum is below 2^64, and each product is one of 32 bits by 32 bits. If a = 2^32, which is so only for the largest
 * n, the products are 0, because they take the low bits of a, and the result is f1.
 *
 * "l - a if l >= a" is min(l, l - a) of unsigned numbers: if l < a, l - a wraps and is the larger one. Likewise the
 * inverse, "d + a if d = l - less wraps", is min(d, d + a).
 *
 * A number that comes out as n or more walks; plain C finishes it. At most 11% do (see permutation.c).
 */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdbool.h>

#include "permutation_internal.h"

extern const struct permutation_kernels permutation_avx512;

enum { LANES = 8, GROUP = 4 };

struct round_constants {
    __m512i n, a, whole, mask, flip, first, second, keys[ROUNDS];
    __m128i h, rest; /* rest: 64 - h */
};

static inline __m512i all(uint64_t value)
{
    return _mm512_set1_epi64((long long)value);
}

static inline void constants_set(struct round_constants *with, const uint64_t *state)
{
    with->n = all(state[STATE_N]);
    with->a = all(state[STATE_A]);
    with->whole = all(state[STATE_A] > UINT32_MAX ? UINT64_MAX : 0);
    with->mask = all(((uint64_t)1 << state[STATE_H]) - 1);
    with->flip = all(state[STATE_FLIP]);
    with->first = all(ROUND_FIRST);
    with->second = all(ROUND_SECOND);
    with->h = _mm_cvtsi64_si128((long long)state[STATE_H]);
    with->rest = _mm_cvtsi64_si128((long long)(64 - state[STATE_H]));
    for (int round = 0; round < ROUNDS; round++)
        with->keys[round] = all(state[STATE_KEYS + round]);
}

static inline __m512i mixed(const struct round_constants *with, __m512i x, int round)
{
    const __m512i t = _mm512_mullo_epi64(_mm512_add_epi64(x, with->keys[round]), with->first);
    return _mm512_mullo_epi64(_mm512_xor_si512(t, _mm512_srli_epi64(t, 32)), with->second);
}

/* high(f, a) */
static inline __m512i scaled(const struct round_constants *with, __m512i f)
{
    const __m512i low = _mm512_srli_epi64(_mm512_mul_epu32(f, with->a), 32);
    const __m512i upper = _mm512_srli_epi64(f, 32);
    const __m512i sum = _mm512_add_epi64(_mm512_mul_epu32(upper, with->a), low);
    return _mm512_or_si512(_mm512_srli_epi64(sum, 32), _mm512_and_si512(upper, with->whole));
}

static inline __m512i flipped(const struct round_constants *with, __m512i x)
{
    return _mm512_mask_xor_epi64(x, _mm512_cmplt_epu64_mask(x, all(2)), x, with->flip);
}

/* Does one pass through the rounds for `vectors` vectors, a constant where it is called. The numbers that walk come
 * back in *out, and their bits in the result. */
static inline __attribute__((always_inline)) uint32_t pass(const struct round_constants *with, const uint64_t *in,
                                                           uint64_t *out, int vectors, bool inverse)
{
    __m512i l[GROUP], r[GROUP];
    uint32_t walking = 0;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
        __m512i x = _mm512_loadu_si512(in + v * LANES);
        if (inverse)
            x = flipped(with, x);
        l[v] = _mm512_srl_epi64(x, with->h);
        r[v] = _mm512_and_si512(x, with->mask);
    }
    for (int pair = 0; pair < ROUNDS; pair += 2) {
        const int even = inverse ? ROUNDS - 2 - pair : pair;
        if (inverse) {
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                r[v] = _mm512_xor_si512(r[v], _mm512_srl_epi64(mixed(with, l[v], even + 1), with->rest));
        }
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            const __m512i amount = scaled(with, mixed(with, r[v], even));
            l[v] = inverse ? _mm512_sub_epi64(l[v], amount) : _mm512_add_epi64(l[v], amount);
            l[v] = _mm512_min_epu64(l[v], inverse ? _mm512_add_epi64(l[v], with->a) : _mm512_sub_epi64(l[v], with->a));
        }
        if (!inverse) {
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                r[v] = _mm512_xor_si512(r[v], _mm512_srl_epi64(mixed(with, l[v], even + 1), with->rest));
        }
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
        __m512i x = _mm512_or_si512(_mm512_sll_epi64(l[v], with->h), r[v]);
        walking |= (uint32_t)_mm512_cmpge_epu64_mask(x, with->n) << (v * LANES);
        if (!inverse)
            x = flipped(with, x);
        _mm512_storeu_si512(out + v * LANES, x);
    }
    return walking;
}

#include "permutation_lanes.h"

const struct permutation_kernels permutation_avx512 = {"avx512", forward, inverse};
#endif
