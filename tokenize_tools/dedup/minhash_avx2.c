/* SPDX-License-Identifier: MIT */
/*
 * minhash_avx2.c - the kernel of minhash.h with 256-bit instructions.
 *
 * AVX2 has no product of 64-bit numbers. It is made of three products of 32-bit halves: with a = a' 2^32 + a" and h
 * split in the same way, a h mod 2^64 is a" h" + (a' h" + a" h') 2^32 mod 2^64. Eight places at a time keep a, b, and
 * the least hashes in registers, over all shingles of the block.
 *
 * The remainder of a sum x by P = 2^61 - 1 is y = (x mod 2^61) + floor(x / 2^61), or y - P if y is P or more, which is
 * the case for one of 2^58 sums. So the loop computes only t = y - P, which is negative otherwise, and compares that.
 * As P has ones only, t is floor(x / 2^61) - (P and not x). `signs` loses its sign if a t was not negative; the block
 * is then computed again by the plain kernel.
 */
#if defined(__x86_64__)
#include "minhash.h"

#include <immintrin.h>

static inline __m256i load(const uint64_t *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

static inline void store(uint64_t *into, __m256i value)
{
    _mm256_storeu_si256((__m256i *)(void *)into, value);
}

/* Returns the hash of a shingle, minus the prime. `high` has the high half of the shingle. */
static inline __m256i reduced(__m256i a, __m256i a_high, __m256i b, __m256i shingle, __m256i high, __m256i prime)
{
    const __m256i cross = _mm256_add_epi64(_mm256_mul_epu32(a_high, shingle), _mm256_mul_epu32(a, high));
    const __m256i low = _mm256_add_epi64(_mm256_mul_epu32(a, shingle), b);
    const __m256i sum = _mm256_add_epi64(low, _mm256_slli_epi64(cross, 32));
    return _mm256_sub_epi64(_mm256_srli_epi64(sum, 61), _mm256_andnot_si256(sum, prime));
}

static inline __m256i smaller(__m256i a, __m256i b)
{
    return _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b));
}

void minhash_avx2(const struct minhash_numbers *numbers, const uint64_t *shingles, uint32_t count, uint64_t *least)
{
    const __m256i prime = _mm256_set1_epi64x((long long)MINHASH_PRIME);
    for (uint32_t j = 0; j < numbers->places; j += MINHASH_LANES) {
        const __m256i a0 = load(numbers->a + j), a1 = load(numbers->a + j + 4);
        const __m256i b0 = load(numbers->b + j), b1 = load(numbers->b + j + 4);
        const __m256i high0 = _mm256_srli_epi64(a0, 32), high1 = _mm256_srli_epi64(a1, 32);
        __m256i least0 = _mm256_sub_epi64(load(least + j), prime),
                least1 = _mm256_sub_epi64(load(least + j + 4), prime);
        __m256i signs = _mm256_set1_epi64x(-1);
        for (uint32_t i = 0; i < count; i++) {
            const __m256i shingle = _mm256_set1_epi64x((long long)shingles[i]);
            const __m256i high = _mm256_set1_epi64x((long long)(shingles[i] >> 32));
            const __m256i t0 = reduced(a0, high0, b0, shingle, high, prime);
            const __m256i t1 = reduced(a1, high1, b1, shingle, high, prime);
            signs = _mm256_and_si256(signs, _mm256_and_si256(t0, t1));
            least0 = smaller(least0, t0);
            least1 = smaller(least1, t1);
        }
        if (_mm256_movemask_pd(_mm256_castsi256_pd(signs)) == 15) {
            store(least + j, _mm256_add_epi64(least0, prime));
            store(least + j + 4, _mm256_add_epi64(least1, prime));
            continue;
        }
        const struct minhash_numbers some = {numbers->a + j, numbers->b + j, MINHASH_LANES};
        minhash_plain(&some, shingles, count, least + j);
    }
}
#endif
