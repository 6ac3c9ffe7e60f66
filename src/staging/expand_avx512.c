/*
 * expand_avx512.c - the kernels of expand.h with 512-bit instructions. The last vector of a row is loaded and stored
 * under a mask, so no row length needs a scalar loop at its end.
 */
#if defined(__x86_64__)
#include "expand_kernels.h"

#include <immintrin.h>

/* LOAD reads a whole vector. PART reads only the lanes in a mask and sets the others to 0. */
#define LOAD_16_32(p) _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define LOAD_16_64(p) _mm512_cvtepu16_epi64(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define LOAD_32_32(p) _mm512_loadu_si512((const void *)(p))
#define LOAD_32_64(p) _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define PART_16_32(mask, p) _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16((__mmask16)(mask), (const void *)(p)))
#define PART_16_64(mask, p) _mm512_cvtepu16_epi64(_mm_maskz_loadu_epi16((__mmask8)(mask), (const void *)(p)))
#define PART_32_32(mask, p) _mm512_maskz_loadu_epi32((__mmask16)(mask), (const void *)(p))
#define PART_32_64(mask, p) _mm512_cvtepu32_epi64(_mm256_maskz_loadu_epi32((__mmask8)(mask), (const void *)(p)))
#define STORE_PART_int32_t(p, mask, v) _mm512_mask_storeu_epi32((void *)(p), (__mmask16)(mask), v)
#define STORE_PART_int64_t(p, mask, v) _mm512_mask_storeu_epi64((void *)(p), (__mmask8)(mask), v)

#define EXPAND(name, from, to)                                                                                         \
    static void one_##name(const void *in, uint64_t count, void *out)                                                  \
    {                                                                                                                  \
        enum { LANES = 64 / sizeof(to) };                                                                              \
        const from *tokens = in;                                                                                       \
        to *ids = out;                                                                                                 \
        uint64_t j = 0;                                                                                                \
        for (; j + LANES <= count; j += LANES)                                                                         \
            _mm512_storeu_si512((void *)(ids + j), LOAD_##name(tokens + j));                                           \
        if (j < count) {                                                                                               \
            uint32_t mask = (1u << (count - j)) - 1;                                                                   \
            STORE_PART_##to(ids + j, mask, PART_##name(mask, tokens + j));                                             \
        }                                                                                                              \
    }                                                                                                                  \
    static void pair_##name(const void *in, uint64_t count, void *inputs, void *targets)                               \
    {                                                                                                                  \
        enum { LANES = 64 / sizeof(to) };                                                                              \
        const from *tokens = in;                                                                                       \
        to *left = inputs, *right = targets;                                                                           \
        uint64_t j = 0;                                                                                                \
        for (; j + LANES <= count; j += LANES) {                                                                       \
            _mm512_storeu_si512((void *)(left + j), LOAD_##name(tokens + j));                                          \
            _mm512_storeu_si512((void *)(right + j), LOAD_##name(tokens + j + 1));                                     \
        }                                                                                                              \
        if (j < count) {                                                                                               \
            uint32_t mask = (1u << (count - j)) - 1;                                                                   \
            STORE_PART_##to(left + j, mask, PART_##name(mask, tokens + j));                                            \
            STORE_PART_##to(right + j, mask, PART_##name(mask, tokens + j + 1));                                       \
        }                                                                                                              \
    }

EXPAND(16_32, uint16_t, int32_t)
EXPAND(16_64, uint16_t, int64_t)
EXPAND(32_32, uint32_t, int32_t)
EXPAND(32_64, uint32_t, int64_t)

static void count_32(uint64_t count, void *out)
{
    char *to = out;
    __m512i value = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    uint64_t j = 0;
    for (; j + 16 <= count; j += 16, value = _mm512_add_epi32(value, _mm512_set1_epi32(16)))
        _mm512_storeu_si512(to + j * 4, value);
    if (j < count)
        _mm512_mask_storeu_epi32(to + j * 4, (__mmask16)((1u << (count - j)) - 1), value);
}

static void count_64(uint64_t count, void *out)
{
    char *to = out;
    __m512i value = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    uint64_t j = 0;
    for (; j + 8 <= count; j += 8, value = _mm512_add_epi64(value, _mm512_set1_epi64(8)))
        _mm512_storeu_si512(to + j * 8, value);
    if (j < count)
        _mm512_mask_storeu_epi64(to + j * 8, (__mmask8)((1u << (count - j)) - 1), value);
}

static void fill_32(uint32_t value, uint64_t count, void *out)
{
    char *to = out;
    __m512i values = _mm512_set1_epi32((int)value);
    uint64_t j = 0;
    for (; j + 16 <= count; j += 16)
        _mm512_storeu_si512(to + j * 4, values);
    if (j < count)
        _mm512_mask_storeu_epi32(to + j * 4, (__mmask16)((1u << (count - j)) - 1), values);
}

static void fill_64(uint32_t value, uint64_t count, void *out)
{
    char *to = out;
    __m512i values = _mm512_set1_epi64(value);
    uint64_t j = 0;
    for (; j + 8 <= count; j += 8)
        _mm512_storeu_si512(to + j * 8, values);
    if (j < count)
        _mm512_mask_storeu_epi64(to + j * 8, (__mmask8)((1u << (count - j)) - 1), values);
}

const struct expand_kernels expand_avx512 = {
    "avx512",
    {{one_16_32, one_16_64}, {one_32_32, one_32_64}},
    {{pair_16_32, pair_16_64}, {pair_32_32, pair_32_64}},
    {count_32, count_64},
    {fill_32, fill_64},
};
#endif
