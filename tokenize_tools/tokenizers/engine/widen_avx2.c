/* SPDX-License-Identifier: MIT */
/* widen_avx2.c - the same with AVX2, 32 bytes per step. */
#include "widen.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* Converts 32 bytes. Returns the larger ones of them and of `most`. */
static inline __m256i widen_32(uint16_t *into, const uint8_t *from, __m256i most)
{
    const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)from);
    _mm256_storeu_si256((__m256i *)(void *)into, _mm256_cvtepu8_epi16(_mm256_castsi256_si128(bytes)));
    _mm256_storeu_si256((__m256i *)(void *)(into + 16), _mm256_cvtepu8_epi16(_mm256_extracti128_si256(bytes, 1)));
    return _mm256_max_epu8(most, bytes);
}

uint32_t widen_avx2(uint16_t *into, const uint8_t *from, size_t count)
{
    __m256i most = _mm256_setzero_si256();
    size_t i = 0;
    if (count >= 64 && !((uintptr_t)into & 1)) { /* from here on, no store is in two lines of the cache */
        most = widen_32(into, from, most);
        i = (32 - ((uintptr_t)into & 31)) / 2;
    }
    for (; count - i >= 32; i += 32)
        most = widen_32(into + i, from + i, most);
    uint8_t lanes[32];
    _mm256_storeu_si256((__m256i *)(void *)lanes, most);
    uint32_t largest = 0;
    for (int lane = 0; lane < 32; lane++)
        largest = lanes[lane] > largest ? lanes[lane] : largest;
    for (; i < count; i++) {
        largest = from[i] > largest ? from[i] : largest;
        into[i] = from[i];
    }
    return largest;
}
#else
typedef int widen_avx2_is_for_x86_64;
#endif
