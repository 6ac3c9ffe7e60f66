/* copy_avx512.c - the kernels of copy.h with 512-bit instructions. The last vector of a copy is masked. */
#if defined(__x86_64__)
#include "copy.h"

#include <immintrin.h>

extern const struct copy_kernels copy_avx512;

/* The body of every kernel. bits is 16 or 32, and a vector has LANES of them. STORE stores a vector and PART the lanes
 * of a mask; both do nothing in kernels that do not copy. Each turn handles two vectors with maxima of their own, so
 * that they do not wait for each other. Afterwards, top0 has the largest value of each lane. */
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
    while (left) {                                                                                                     \
        uint64_t part = left < LANES ? left : LANES;                                                                   \
        mask_t mask = (mask_t)(~(uint64_t)0 >> (64 - part));                                                           \
        __m512i v = _mm512_maskz_loadu_epi##bits(mask, at);                                                            \
        PART(bits, mask, v);                                                                                           \
        top0 = _mm512_max_epu##bits(top0, v);                                                                          \
        left -= part;                                                                                                  \
        at += part * (bits / 8);                                                                                       \
    }                                                                                                                  \
    top0 = _mm512_max_epu##bits(top0, top1)

#define TO (void *)((char *)into + (at - (const char *)from))
#define STORE_COPY(offset, v) _mm512_storeu_si512((char *)TO + (offset), v)
#define PART_COPY(bits, mask, v) _mm512_mask_storeu_epi##bits(TO, mask, v)
#define STORE_NONE(offset, v)
#define PART_NONE(bits, mask, v)

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

/* Each vector is loaded before one is stored, and the stores end where the tokens that were not loaded begin or before:
 * see widen16() in copy.c. */
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

const struct copy_kernels copy_avx512 = {"avx512", copy16, copy32, widen16, largest16, largest32};
#endif
