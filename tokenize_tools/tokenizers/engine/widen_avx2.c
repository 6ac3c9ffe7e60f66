/* SPDX-License-Identifier: MIT */
/* widen_avx2.c - the same with AVX2, 32 bytes per step. */
#include "widen.h"

#if defined(__x86_64__)
#include <immintrin.h>

uint32_t widen_avx2(uint16_t *into, const uint8_t *from, size_t count)
{
    __m256i most = _mm256_setzero_si256();
    size_t i = 0;
    for (; count - i >= 32; i += 32) {
        const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(from + i));
        most = _mm256_max_epu8(most, bytes);
        _mm256_storeu_si256((__m256i *)(void *)(into + i), _mm256_cvtepu8_epi16(_mm256_castsi256_si128(bytes)));
        _mm256_storeu_si256((__m256i *)(void *)(into + i + 16),
                            _mm256_cvtepu8_epi16(_mm256_extracti128_si256(bytes, 1)));
    }
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
