/* SPDX-License-Identifier: MIT */
/*
 * expand_avx2.c - the kernels of expand.h with 256-bit instructions.
 *
 * A store that crosses a cache line costs two. If an output does not begin at a multiple of 32 bytes, every second
 * store would be such a one. So the first vector goes to the beginning of the output, and the ones after it begin at
 * the next multiple of 32, where they write some of its elements again. Of two outputs, the first one decides; where a
 * program allocates both in the same way, the other one is at the same distance.
 *
 * Example: 20 elements of 4 bytes at address 24. The vector at 24 has elements 0 to 7, that at 32 has 2 to 9, that at
 * 64 has 10 to 17, and a loop writes the last two.
 */
#if defined(__x86_64__)
#include "expand.h"

#include <immintrin.h>

#include "common/bytes.h"

#define VECTOR __m256i
#define BYTES 32
#define LOAD_16_32(p) _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define LOAD_16_64(p) _mm256_cvtepu16_epi64(_mm_loadl_epi64((const __m128i *)(const void *)(p)))
#define LOAD_32_32(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define LOAD_32_64(p) _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define SET_32(value) _mm256_set1_epi32((int)(value))
#define SET_64(value) _mm256_set1_epi64x(value)
#define NUMBERS_32 _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)
#define NUMBERS_64 _mm256_setr_epi64x(0, 1, 2, 3)
#define ADD_32(a, b) _mm256_add_epi32(a, b)
#define ADD_64(a, b) _mm256_add_epi64(a, b)
/* Every line, while others are stored, and the line of the last target, which may be on another page. On Zen 3, rows of
 * 2,048 tokens of 16 bits at random places of 2 GB in the page cache, median ns a row: 874, and 1,326 without
 * prefetches, 1,217 with 4 lines at once, 1,095 with 8, 1,014 with 16, 1,180 with 32. */
#define PREFETCH_LAST(p, count) __builtin_prefetch((p) + (count))
#define PREFETCH_ROUND(p, bytes)                                                                                       \
    (__builtin_prefetch(p), (bytes) > 64 ? __builtin_prefetch((const char *)(p) + 64) : (void)0)
#define LARGER(a, b) _mm256_max_epu32(a, b)
#define LARGEST(v, rest) largest_of(v, rest)

/* Returns lanes of which all bits are 1 where the bit of the element is 1, for the 8 or 4 low bits of a word. The bits
 * of each group of lanes select their lanes. */
static inline __m256i lanes_32(uint64_t word)
{
    const __m256i lanes = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)word), lanes), lanes);
}

static inline __m256i lanes_64(uint64_t word)
{
    const __m256i lanes = _mm256_setr_epi64x(1, 2, 4, 8);
    return _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x((long long)word), lanes), lanes);
}

#define CHOOSE_32(v, bits, j, n, other) _mm256_blendv_epi8(v, other, lanes_32(expand_bits_from(bits, j, 8)))
#define CHOOSE_64(v, bits, j, n, other) _mm256_blendv_epi8(v, other, lanes_64(expand_bits_from(bits, j, 4)))
#define CLEAR_32(v, bits, j, n) _mm256_andnot_si256(lanes_32(expand_bits_from(bits, j, 8)), v)
#define CLEAR_64(v, bits, j, n) _mm256_andnot_si256(lanes_64(expand_bits_from(bits, j, 4)), v)
#define STORE_WHERE_32(p, word, v) _mm256_maskstore_epi32((int *)(void *)(p), lanes_32(word), v)
#define STORE_WHERE_64(p, word, v) _mm256_maskstore_epi64((long long *)(void *)(p), lanes_64(word), v)
#define PERMUTE(v, indices) _mm256_permutevar8x32_epi32(v, indices)
#define STORE_WIDE_32(p, v) STORE(p, v)
#define STORE_WIDE_64(p, v)                                                                                            \
    (STORE(p, _mm256_cvtepu32_epi64(_mm256_castsi256_si128(v))),                                                       \
     STORE((p) + 4, _mm256_cvtepu32_epi64(_mm256_extracti128_si256(v, 1))))

/* Returns which element the second vector of an output begins with: the first one at a multiple of 32 bytes. It is 0,
 * so that there is no further first vector, where every vector begins at such a multiple or none can. */
static inline uint64_t elements_before(const void *out, uint64_t size, uint64_t count)
{
    const uint64_t bytes = -(uint64_t)(uintptr_t)out % 32;
    return bytes % size || count * size < 32 ? 0 : bytes / size;
}

#define FIRST_16_32(n, p) LOAD_16_32(p)
#define FIRST_16_64(n, p) LOAD_16_64(p)
#define FIRST_32_32(n, p) LOAD_32_32(p)
#define FIRST_32_64(n, p) LOAD_32_64(p)
#define STORE_FIRST_32(p, n, v) STORE(p, v)
#define STORE_FIRST_64(p, n, v) STORE(p, v)

static inline uint32_t largest_of(__m256i v, uint32_t rest)
{
    uint32_t lanes[8];
    _mm256_storeu_si256((__m256i *)(void *)lanes, v);
    for (unsigned lane = 0; lane < 8; lane++)
        rest = lanes[lane] > rest ? lanes[lane] : rest;
    return rest;
}

#define REST(j, count) for (; j < count; j++)
#define PART(to) int##to##_t
#define PART_16_32(n, p) ((int32_t)load16(p))
#define PART_16_64(n, p) ((int64_t)load16(p))
#define PART_32_32(n, p) ((int32_t)load32(p))
#define PART_32_64(n, p) ((int64_t)load32(p))
#define STORE_PART_32(p, n, v) store32(p, (uint32_t)(v))
#define STORE_PART_64(p, n, v) store64(p, (uint64_t)(v))
#define CHOOSE_PART_32(v, bits, j, n, other) ((bits)[(j) / 64] >> ((j) % 64) & 1 ? (other) : (v))
#define CHOOSE_PART_64(v, bits, j, n, other) CHOOSE_PART_32(v, bits, j, n, other)
#define CLEAR_PART_32(v, bits, j, n) CHOOSE_PART_32(v, bits, j, n, 0)
#define CLEAR_PART_64(v, bits, j, n) CHOOSE_PART_32(v, bits, j, n, 0)
#define PART_OF(v, value) (value)
#define LARGER_PART(v, rest, part) ((rest) = (uint32_t)max64(rest, (uint64_t)(part)&UINT32_MAX))

#include "expand_lanes.h"

const struct expand_kernels expand_avx2 = {"avx2", EXPAND_KERNELS};
#endif
