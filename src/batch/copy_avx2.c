/* SPDX-License-Identifier: MIT */
/* copy_avx2.c - the kernels of copy.h with 256-bit instructions. */
#if defined(__x86_64__)
#include "copy.h"

#include <immintrin.h>

#include "common/bytes.h"

extern const struct copy_kernels copy_avx2;

/* The body of every kernel. bits is 16 or 32. STORE stores a vector and KEEP one token; both do nothing in kernels that
 * do not copy. Each iteration handles four vectors with maxima of their own, so that they do not wait for each other.
 */
#define LARGEST(bits, STORE, KEEP)                                                                                     \
    enum { LANES = 256 / bits };                                                                                       \
    const char *at = from;                                                                                             \
    __m256i top0 = _mm256_setzero_si256(), top1 = top0, top2 = top0, top3 = top0;                                      \
    uint64_t i = 0;                                                                                                    \
    for (; i + (uint64_t)4 * LANES <= count; i += (uint64_t)4 * LANES, at += 128) {                                    \
        __m256i v0 = _mm256_loadu_si256((const __m256i *)(const void *)at);                                            \
        __m256i v1 = _mm256_loadu_si256((const __m256i *)(const void *)(at + 32));                                     \
        __m256i v2 = _mm256_loadu_si256((const __m256i *)(const void *)(at + 64));                                     \
        __m256i v3 = _mm256_loadu_si256((const __m256i *)(const void *)(at + 96));                                     \
        STORE(0, v0);                                                                                                  \
        STORE(32, v1);                                                                                                 \
        STORE(64, v2);                                                                                                 \
        STORE(96, v3);                                                                                                 \
        top0 = _mm256_max_epu##bits(top0, v0);                                                                         \
        top1 = _mm256_max_epu##bits(top1, v1);                                                                         \
        top2 = _mm256_max_epu##bits(top2, v2);                                                                         \
        top3 = _mm256_max_epu##bits(top3, v3);                                                                         \
    }                                                                                                                  \
    top0 = _mm256_max_epu##bits(_mm256_max_epu##bits(top0, top1), _mm256_max_epu##bits(top2, top3));                   \
    uint##bits##_t lanes[LANES], top = 0;                                                                              \
    _mm256_storeu_si256((__m256i *)(void *)lanes, top0);                                                               \
    for (unsigned lane = 0; lane < LANES; lane++)                                                                      \
        top = lanes[lane] > top ? lanes[lane] : top;                                                                   \
    for (; i < count; i++, at += bits / 8) {                                                                           \
        uint##bits##_t id = load##bits(at);                                                                            \
        KEEP(bits, id);                                                                                                \
        top = id > top ? id : top;                                                                                     \
    }                                                                                                                  \
    return top;

#define STORE_COPY(offset, v)                                                                                          \
    _mm256_storeu_si256((__m256i *)(void *)((char *)into + (at - (const char *)from) + (offset)), v)
#define KEEP_COPY(bits, id) store##bits((char *)into + i * sizeof(id), id)
#define STORE_NONE(offset, v)
#define KEEP_NONE(bits, id)

static uint32_t copy16(void *into, const void *from, uint64_t count)
{
    LARGEST(16, STORE_COPY, KEEP_COPY)
}

static uint32_t copy32(void *into, const void *from, uint64_t count)
{
    LARGEST(32, STORE_COPY, KEEP_COPY)
}

static uint32_t largest16(const void *from, uint64_t count)
{
    LARGEST(16, STORE_NONE, KEEP_NONE)
}

static uint32_t largest32(const void *from, uint64_t count)
{
    LARGEST(32, STORE_NONE, KEEP_NONE)
}

/* Widens tokens. Each vector is loaded before one is stored, and the stores end where the tokens that were not loaded
 * begin or before: see widen16() in copy.c. */
static uint32_t widen16(void *into, const void *from, uint64_t count)
{
    const char *at = from;
    char *to = into;
    __m256i top0 = _mm256_setzero_si256(), top1 = top0;
    uint64_t i = 0;
    for (; i + 16 <= count; i += 16, at += 32, to += 64) {
        __m256i v0 = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)at));
        __m256i v1 = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(at + 16)));
        _mm256_storeu_si256((__m256i *)(void *)to, v0);
        _mm256_storeu_si256((__m256i *)(void *)(to + 32), v1);
        top0 = _mm256_max_epu32(top0, v0);
        top1 = _mm256_max_epu32(top1, v1);
    }
    uint32_t lanes[8], top = 0;
    _mm256_storeu_si256((__m256i *)(void *)lanes, _mm256_max_epu32(top0, top1));
    for (unsigned lane = 0; lane < 8; lane++)
        top = lanes[lane] > top ? lanes[lane] : top;
    for (; i < count; i++, at += 2, to += 4) {
        uint32_t id = load16(at);
        store32(to, id);
        top = id > top ? id : top;
    }
    return top;
}

const struct copy_kernels copy_avx2 = {.name = "avx2",
                                       .copy16 = copy16,
                                       .copy32 = copy32,
                                       .widen16 = widen16,
                                       .largest16 = largest16,
                                       .largest32 = largest32};
#endif
