/* SPDX-License-Identifier: MIT */
/*
 * minhash_avx512.c - the kernel of minhash.h with 512-bit instructions, which have the product of 64-bit numbers and
 * the lesser of two. See minhash_avx2.c for what it computes. Sixteen places at a time keep a, b, and the least hashes
 * in registers, over all shingles of the block.
 */
#if defined(__x86_64__)
#include "minhash.h"

#include <immintrin.h>

struct lanes {
    __m512i a, b, least;
};

static inline struct lanes lanes_load(const struct minhash_numbers *numbers, const uint64_t *least, uint32_t j,
                                      __m512i prime)
{
    return (struct lanes){_mm512_loadu_si512(numbers->a + j), _mm512_loadu_si512(numbers->b + j),
                          _mm512_sub_epi64(_mm512_loadu_si512(least + j), prime)};
}

/* Returns the hash of a shingle, minus the prime. */
static inline __m512i reduced(const struct lanes *lanes, __m512i shingle, __m512i prime)
{
    const __m512i sum = _mm512_add_epi64(_mm512_mullo_epi64(lanes->a, shingle), lanes->b);
    return _mm512_sub_epi64(_mm512_srli_epi64(sum, 61), _mm512_andnot_si512(sum, prime));
}

/* Writes the least hashes of eight places, unless a difference was not negative. */
static inline void lanes_store(const struct minhash_numbers *numbers, const uint64_t *shingles, uint32_t count,
                               uint64_t *least, uint32_t j, const struct lanes *lanes, __m512i signs, __m512i prime)
{
    if (_mm512_movepi64_mask(signs) == 0xFF) {
        _mm512_storeu_si512(least + j, _mm512_add_epi64(lanes->least, prime));
        return;
    }
    const struct minhash_numbers some = {numbers->a + j, numbers->b + j, MINHASH_LANES};
    minhash_plain(&some, shingles, count, least + j);
}

void minhash_avx512(const struct minhash_numbers *numbers, const uint64_t *shingles, uint32_t count, uint64_t *least)
{
    const __m512i prime = _mm512_set1_epi64((long long)MINHASH_PRIME);
    uint32_t j = 0;
    for (; j + 2 * MINHASH_LANES <= numbers->places; j += 2 * MINHASH_LANES) {
        struct lanes first = lanes_load(numbers, least, j, prime),
                     second = lanes_load(numbers, least, j + MINHASH_LANES, prime);
        __m512i first_signs = _mm512_set1_epi64(-1), second_signs = first_signs;
        for (uint32_t i = 0; i < count; i++) {
            const __m512i shingle = _mm512_set1_epi64((long long)shingles[i]);
            const __m512i t = reduced(&first, shingle, prime), u = reduced(&second, shingle, prime);
            first_signs = _mm512_and_si512(first_signs, t);
            second_signs = _mm512_and_si512(second_signs, u);
            first.least = _mm512_min_epi64(first.least, t);
            second.least = _mm512_min_epi64(second.least, u);
        }
        lanes_store(numbers, shingles, count, least, j, &first, first_signs, prime);
        lanes_store(numbers, shingles, count, least, j + MINHASH_LANES, &second, second_signs, prime);
    }
    for (; j < numbers->places; j += MINHASH_LANES) {
        struct lanes lanes = lanes_load(numbers, least, j, prime);
        __m512i signs = _mm512_set1_epi64(-1);
        for (uint32_t i = 0; i < count; i++) {
            const __m512i t = reduced(&lanes, _mm512_set1_epi64((long long)shingles[i]), prime);
            signs = _mm512_and_si512(signs, t);
            lanes.least = _mm512_min_epi64(lanes.least, t);
        }
        lanes_store(numbers, shingles, count, least, j, &lanes, signs, prime);
    }
}
#endif
