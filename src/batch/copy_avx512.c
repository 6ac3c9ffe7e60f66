/* SPDX-License-Identifier: MIT */
/*
 * copy_avx512.c - the kernels of copy.h with 512-bit instructions.
 *
 * The last vector of a copy ends where the tokens end, and overlaps the one before. Masked stores, the obvious way,
 * cost some processors (AMD's Zen 4) as much as many whole vectors; rows of short extents spent a tenth of their time
 * there.
 */
#if defined(__x86_64__)
#include "copy.h"

#include <immintrin.h>
#include <string.h>

extern const struct copy_kernels copy_avx512;

/* The body of every kernel. bits is 16 or 32, and a vector has LANES of them. STORE stores a vector and PART the
 * first bytes of one; both do nothing in kernels that do not copy. Each iteration handles two vectors with maxima of
 * their own, so that they do not wait for each other. Afterwards, top0 has the largest value of each lane. */
#define LARGEST(bits, LANES, mask_t, STORE, PART)                                                                      \
    const char *at = from;                                                                                             \
    __m512i top0 = _mm512_setzero_si512(), top1 = top0;                                                                \
    uint64_t left = count;                                                                                             \
    for (; left >= 2 * LANES; left -= 2 * LANES, at += 128) {                                                          \
        __m512i v0 = _mm512_loadu_si512(at), v1 = _mm512_loadu_si512(at + 64);                                         \
        STORE(0, v0);                                                                                                  \
        STORE(64, v1);                                                                                                 \
        top0 = _mm512_max_epu##bits(top0, v0);                                                                         \
        top1 = _mm512_max_epu##bits(top1, v1);                                                                         \
    }                                                                                                                  \
    if (left >= LANES) {                                                                                               \
        __m512i v = _mm512_loadu_si512(at);                                                                            \
        STORE(0, v);                                                                                                   \
        top0 = _mm512_max_epu##bits(top0, v);                                                                          \
        left -= LANES;                                                                                                 \
        at += 64;                                                                                                      \
    }                                                                                                                  \
    if (left && count >= LANES) {                                                                                      \
        at += left * (bits / 8);                                                                                       \
        at -= 64;                                                                                                      \
        __m512i v = _mm512_loadu_si512(at);                                                                            \
        STORE(0, v);                                                                                                   \
        top0 = _mm512_max_epu##bits(top0, v);                                                                          \
    } else if (left) {                                                                                                 \
        __m512i v = _mm512_maskz_loadu_epi##bits((mask_t)(~(uint64_t)0 >> (64 - left)), at);                           \
        PART(v, left *(bits / 8));                                                                                     \
        top0 = _mm512_max_epu##bits(top0, v);                                                                          \
    }                                                                                                                  \
    top0 = _mm512_max_epu##bits(top0, top1)

#define TO (void *)((char *)into + (at - (const char *)from))
#define STORE_COPY(offset, v) _mm512_storeu_si512((char *)TO + (offset), v)
#define PART_COPY(v, bytes) store_part(TO, v, bytes)
#define STORE_NONE(offset, v)
#define PART_NONE(v, bytes)

/* Stores the first `bytes` bytes of a vector: an even number from 2 to 62. They are those that the maximum has seen, so
 * they are not loaded again from a file that may change. */
static inline void store_part(uint8_t *to, __m512i v, uint64_t bytes)
{
    uint8_t from[64];
    _mm512_storeu_si512(from, v);
    if (bytes >= 32) {
        memcpy(to, from, 32);
        memcpy(to + bytes - 32, from + bytes - 32, 32);
    } else if (bytes >= 16) {
        memcpy(to, from, 16);
        memcpy(to + bytes - 16, from + bytes - 16, 16);
    } else if (bytes >= 8) {
        memcpy(to, from, 8);
        memcpy(to + bytes - 8, from + bytes - 8, 8);
    } else if (bytes >= 4) {
        memcpy(to, from, 4);
        memcpy(to + bytes - 4, from + bytes - 4, 4);
    } else {
        memcpy(to, from, 2);
    }
}

static uint32_t top_of_16(__m512i lanes)
{
    __m512i low = _mm512_and_si512(lanes, _mm512_set1_epi32(0xffff));
    return _mm512_reduce_max_epu32(_mm512_max_epu32(low, _mm512_srli_epi32(lanes, 16)));
}

static uint32_t copy16(void *into, const void *from, uint64_t count)
{
    LARGEST(16, 32, __mmask32, STORE_COPY, PART_COPY);
    return top_of_16(top0);
}

static uint32_t copy32(void *into, const void *from, uint64_t count)
{
    LARGEST(32, 16, __mmask16, STORE_COPY, PART_COPY);
    return _mm512_reduce_max_epu32(top0);
}

static uint32_t largest16(const void *from, uint64_t count)
{
    LARGEST(16, 32, __mmask32, STORE_NONE, PART_NONE);
    return top_of_16(top0);
}

static uint32_t largest32(const void *from, uint64_t count)
{
    LARGEST(32, 16, __mmask16, STORE_NONE, PART_NONE);
    return _mm512_reduce_max_epu32(top0);
}

/* Widens tokens. Each vector is loaded before one is stored, and the stores end where the tokens that were not loaded
 * begin or before: see widen16() in copy.c. */
static uint32_t widen16(void *into, const void *from, uint64_t count)
{
    const char *at = from;
    char *to = into;
    __m512i top0 = _mm512_setzero_si512(), top1 = top0;
    uint64_t left = count;
    for (; left >= 32; left -= 32, at += 64, to += 128) {
        __m512i v0 = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)at));
        __m512i v1 = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(at + 32)));
        _mm512_storeu_si512(to, v0);
        _mm512_storeu_si512(to + 64, v1);
        top0 = _mm512_max_epu32(top0, v0);
        top1 = _mm512_max_epu32(top1, v1);
    }
    while (left) {
        uint64_t part = left < 16 ? left : 16;
        __mmask16 mask = (__mmask16)(0xffffu >> (16 - part));
        /* The 32-bit lanes of a masked 512-bit load of 16-bit tokens: the upper half of the mask is 0. */
        __m512i v = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(_mm512_maskz_loadu_epi16(mask, at)));
        _mm512_mask_storeu_epi32(to, mask, v);
        top0 = _mm512_max_epu32(top0, v);
        left -= part;
        at += part * 2;
        to += part * 4;
    }
    return _mm512_reduce_max_epu32(_mm512_max_epu32(top0, top1));
}

const struct copy_kernels copy_avx512 = {.name = "avx512",
                                         .copy16 = copy16,
                                         .copy32 = copy32,
                                         .widen16 = widen16,
                                         .largest16 = largest16,
                                         .largest32 = largest32};
#endif
