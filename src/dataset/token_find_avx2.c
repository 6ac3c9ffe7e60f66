/* SPDX-License-Identifier: MIT */
#include "token_find.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <stdbool.h>

#include "common/bytes.h"

enum { VECTOR_BYTES = 32, GROUP_BYTES = 4 * VECTOR_BYTES };

static inline __m256i equal(const uint8_t *at, __m256i wanted, bool wide)
{
    const __m256i found = _mm256_loadu_si256((const __m256i *)(const void *)at);
    return wide ? _mm256_cmpeq_epi32(found, wanted) : _mm256_cmpeq_epi16(found, wanted);
}

static inline __attribute__((always_inline)) uint64_t find(const uint8_t *tokens, uint64_t from, uint64_t count,
                                                           uint32_t id, bool wide)
{
    const uint32_t shift = wide ? 2 : 1;
    const __m256i wanted = wide ? _mm256_set1_epi32((int)id) : _mm256_set1_epi16((short)id);
    const uint64_t end = count << shift;
    uint64_t at = from << shift;
    for (; end - at >= GROUP_BYTES; at += GROUP_BYTES) {
        const __m256i a = equal(tokens + at, wanted, wide), b = equal(tokens + at + 32, wanted, wide);
        const __m256i c = equal(tokens + at + 64, wanted, wide), d = equal(tokens + at + 96, wanted, wide);
        const __m256i any = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
        if (_mm256_testz_si256(any, any))
            continue;
        const uint64_t low = (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b)
                                                                     << VECTOR_BYTES;
        const uint64_t high = (uint32_t)_mm256_movemask_epi8(c) | (uint64_t)(uint32_t)_mm256_movemask_epi8(d)
                                                                      << VECTOR_BYTES;
        return (at + (uint64_t)(low ? __builtin_ctzll(low) : 64 + __builtin_ctzll(high))) >> shift;
    }
    for (; at < end; at += (uint64_t)1 << shift)
        if ((wide ? load32(tokens + at) : load16(tokens + at)) == id)
            return at >> shift;
    return count;
}

uint64_t token_find_avx2(const uint8_t *tokens, uint32_t width, uint64_t from, uint64_t count, uint32_t id)
{
    return width == 4 ? find(tokens, from, count, id, true) : find(tokens, from, count, id, false);
}
#endif
