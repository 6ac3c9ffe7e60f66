/* expand_avx2.c - the kernels of expand.h with 256-bit instructions. */
#if defined(__x86_64__)
#include "expand_kernels.h"

#include <immintrin.h>
#include <string.h>

#include "common/bytes.h"

#define LOAD_16_32(p) _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define LOAD_16_64(p) _mm256_cvtepu16_epi64(_mm_loadl_epi64((const __m128i *)(const void *)(p)))
#define LOAD_32_32(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define LOAD_32_64(p) _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)(const void *)(p)))

#define EXPAND(name, from, to, tail_load)                                                                              \
    static void one_##name(const void *in, uint64_t count, void *out)                                                  \
    {                                                                                                                  \
        enum { LANES = 32 / sizeof(to) };                                                                              \
        const from *tokens = in;                                                                                       \
        to *ids = out;                                                                                                 \
        uint64_t j = 0;                                                                                                \
        for (; j + LANES <= count; j += LANES)                                                                         \
            _mm256_storeu_si256((__m256i *)(void *)(ids + j), LOAD_##name(tokens + j));                                \
        for (; j < count; j++) {                                                                                       \
            to value = (to)tail_load(tokens + j);                                                                      \
            memcpy(ids + j, &value, sizeof value);                                                                     \
        }                                                                                                              \
    }                                                                                                                  \
    static void pair_##name(const void *in, uint64_t count, void *inputs, void *targets)                               \
    {                                                                                                                  \
        enum { LANES = 32 / sizeof(to) };                                                                              \
        const from *tokens = in;                                                                                       \
        to *left = inputs, *right = targets;                                                                           \
        uint64_t j = 0;                                                                                                \
        for (; j + LANES <= count; j += LANES) {                                                                       \
            _mm256_storeu_si256((__m256i *)(void *)(left + j), LOAD_##name(tokens + j));                               \
            _mm256_storeu_si256((__m256i *)(void *)(right + j), LOAD_##name(tokens + j + 1));                          \
        }                                                                                                              \
        for (; j < count; j++) {                                                                                       \
            to one = (to)tail_load(tokens + j), next = (to)tail_load(tokens + j + 1);                                  \
            memcpy(left + j, &one, sizeof one);                                                                        \
            memcpy(right + j, &next, sizeof next);                                                                     \
        }                                                                                                              \
    }

EXPAND(16_32, uint16_t, int32_t, load16)
EXPAND(16_64, uint16_t, int64_t, load16)
EXPAND(32_32, uint32_t, int32_t, load32)
EXPAND(32_64, uint32_t, int64_t, load32)

static void count_32(uint64_t count, void *out)
{
    char *to = out;
    __m256i value = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    uint64_t j = 0;
    for (; j + 8 <= count; j += 8, value = _mm256_add_epi32(value, _mm256_set1_epi32(8)))
        _mm256_storeu_si256((__m256i *)(void *)(to + j * 4), value);
    for (; j < count; j++)
        store32(to + j * 4, (uint32_t)j);
}

static void count_64(uint64_t count, void *out)
{
    char *to = out;
    __m256i value = _mm256_setr_epi64x(0, 1, 2, 3);
    uint64_t j = 0;
    for (; j + 4 <= count; j += 4, value = _mm256_add_epi64(value, _mm256_set1_epi64x(4)))
        _mm256_storeu_si256((__m256i *)(void *)(to + j * 8), value);
    for (; j < count; j++)
        store64(to + j * 8, j);
}

static void fill_32(uint32_t value, uint64_t count, void *out)
{
    char *to = out;
    __m256i values = _mm256_set1_epi32((int)value);
    uint64_t j = 0;
    for (; j + 8 <= count; j += 8)
        _mm256_storeu_si256((__m256i *)(void *)(to + j * 4), values);
    for (; j < count; j++)
        store32(to + j * 4, value);
}

static void fill_64(uint32_t value, uint64_t count, void *out)
{
    char *to = out;
    __m256i values = _mm256_set1_epi64x(value);
    uint64_t j = 0;
    for (; j + 4 <= count; j += 4)
        _mm256_storeu_si256((__m256i *)(void *)(to + j * 8), values);
    for (; j < count; j++)
        store64(to + j * 8, value);
}

const struct expand_kernels expand_avx2 = {
    "avx2",
    {{one_16_32, one_16_64}, {one_32_32, one_32_64}},
    {{pair_16_32, pair_16_64}, {pair_32_32, pair_32_64}},
    {count_32, count_64},
    {fill_32, fill_64},
};
#endif
