/* SPDX-License-Identifier: MIT */
/*
 * expand_avx512.c - the kernels of expand.h with 512-bit instructions. The last vector of a row is loaded and stored
 * under a mask, so no row length needs a scalar loop at its end.
 *
 * A store that crosses a cache line costs two. An output that does not begin at a multiple of 64 bytes, which the
 * memory of most allocators does not, would make every store such a one. So a first vector under a mask goes up to the
 * next multiple of 64, and whole vectors follow. Of two outputs, the first one decides; where a program allocates both
 * in the same way, the other one is at the same distance.
 */
#if defined(__x86_64__)
#include "expand.h"

#include <immintrin.h>

#define VECTOR __m512i
#define BYTES 64
#define LOAD_16_32(p) _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define LOAD_16_64(p) _mm512_cvtepu16_epi64(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define LOAD_32_32(p) _mm512_loadu_si512((const void *)(p))
#define LOAD_32_64(p) _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define STORE(p, v) _mm512_storeu_si512((void *)(p), v)
#define SET_32(value) _mm512_set1_epi32((int)(value))
#define SET_64(value) _mm512_set1_epi64(value)
#define NUMBERS_32 _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define NUMBERS_64 _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7)
#define ADD_32(a, b) _mm512_add_epi32(a, b)
#define ADD_64(a, b) _mm512_add_epi64(a, b)
/* Nothing: what the gather has prefetched of the next row is best. On Emerald Rapids, every line of it between the
 * stores of a row made 3.2 to 3.4 G tokens/s instead of 4.0 (see gather.c). */
#define PREFETCH_LAST(p, count) (void)(p)
#define PREFETCH_ROUND(p, bytes)
#define LARGER(a, b) _mm512_max_epu32(a, b)
#define LARGEST(v, rest) (_mm512_reduce_max_epu32(v) | (rest)) /* rest is 0: parts are vectors */
#define BITS_32(bits, j, n) ((__mmask16)expand_bits_from(bits, j, n))
#define BITS_64(bits, j, n) ((__mmask8)expand_bits_from(bits, j, n))
#define CHOOSE_32(v, bits, j, n, other) _mm512_mask_mov_epi32(v, BITS_32(bits, j, n), other)
#define CHOOSE_64(v, bits, j, n, other) _mm512_mask_mov_epi64(v, BITS_64(bits, j, n), other)
#define CLEAR_32(v, bits, j, n) CHOOSE_32(v, bits, j, n, _mm512_setzero_si512())
#define CLEAR_64(v, bits, j, n) CHOOSE_64(v, bits, j, n, _mm512_setzero_si512())
#define STORE_WHERE_32(p, word, v) _mm512_mask_storeu_epi32((void *)(p), (__mmask16)(word), v)
#define STORE_WHERE_64(p, word, v) _mm512_mask_storeu_epi64((void *)(p), (__mmask8)(word), v)
#define PERMUTE(v, indices) _mm512_permutexvar_epi32(indices, v)
#define STORE_WIDE_32(p, v) STORE(p, v)
#define STORE_WIDE_64(p, v)                                                                                            \
    (STORE(p, _mm512_cvtepu32_epi64(_mm512_castsi512_si256(v))),                                                       \
     STORE((p) + 8, _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(v, 1))))

/* Returns the elements of `size` bytes before the first one that is at a multiple of 64 bytes; 0 if there is none. */
static inline uint64_t elements_before(const void *out, uint64_t size, uint64_t count)
{
    const uint64_t bytes = -(uint64_t)(uintptr_t)out % 64;
    return bytes % size || bytes / size > count ? 0 : bytes / size;
}

/* Loads the lanes of a part that are in a mask; the others are 0. */
#define MASK(n) ((1u << (n)) - 1)
#define REST(j, count) if (j < count)
#define PART(to) __m512i
#define PART_16_32(n, p) _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16((__mmask16)MASK(n), (const void *)(p)))
#define PART_16_64(n, p) _mm512_cvtepu16_epi64(_mm_maskz_loadu_epi16((__mmask8)MASK(n), (const void *)(p)))
#define PART_32_32(n, p) _mm512_maskz_loadu_epi32((__mmask16)MASK(n), (const void *)(p))
#define PART_32_64(n, p) _mm512_cvtepu32_epi64(_mm256_maskz_loadu_epi32((__mmask8)MASK(n), (const void *)(p)))
#define STORE_PART_32(p, n, v) STORE_WHERE_32(p, MASK(n), v)
#define STORE_PART_64(p, n, v) STORE_WHERE_64(p, MASK(n), v)
#define CHOOSE_PART_32 CHOOSE_32
#define CHOOSE_PART_64 CHOOSE_64
#define CLEAR_PART_32 CLEAR_32
#define CLEAR_PART_64 CLEAR_64
#define PART_OF(v, value) (v)
#define LARGER_PART(v, rest, part) ((v) = LARGER(v, part))

#define FIRST_16_32 PART_16_32
#define FIRST_16_64 PART_16_64
#define FIRST_32_32 PART_32_32
#define FIRST_32_64 PART_32_64
#define STORE_FIRST_32 STORE_PART_32
#define STORE_FIRST_64 STORE_PART_64

#include "expand_lanes.h"

const struct expand_kernels expand_avx512 = {"avx512", EXPAND_KERNELS};
#endif
