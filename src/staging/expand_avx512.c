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
#include <string.h>

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

/* The elements of `size` bytes before the first one that is at a multiple of 64 bytes; 0 if there is none. */
static inline uint64_t before_line(const void *out, uint64_t size, uint64_t count)
{
    const uint64_t bytes = -(uint64_t)(uintptr_t)out % 64;
    return bytes % size || bytes / size > count ? 0 : bytes / size;
}

#define EXPAND(name, from, to)                                                                                         \
    static void one_##name(const void *in, uint64_t count, void *out)                                                  \
    {                                                                                                                  \
        enum { LANES = 64 / sizeof(to) };                                                                              \
        const from *tokens = in;                                                                                       \
        to *ids = out;                                                                                                 \
        uint64_t j = before_line(ids, sizeof(to), count);                                                              \
        if (j) {                                                                                                       \
            const uint32_t mask = (1u << j) - 1;                                                                       \
            STORE_PART_##to(ids, mask, PART_##name(mask, tokens));                                                     \
        }                                                                                                              \
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
        uint64_t j = before_line(left, sizeof(to), count);                                                             \
        if (j) {                                                                                                       \
            const uint32_t mask = (1u << j) - 1;                                                                       \
            STORE_PART_##to(left, mask, PART_##name(mask, tokens));                                                    \
            STORE_PART_##to(right, mask, PART_##name(mask, tokens + 1));                                               \
        }                                                                                                              \
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

#define BITS_int32_t(bits, j, lanes) ((__mmask16)expand_bits_from(bits, j, lanes))
#define BITS_int64_t(bits, j, lanes) ((__mmask8)expand_bits_from(bits, j, lanes))

#define SET_int32_t(value) _mm512_set1_epi32((int)(value))
#define SET_int64_t(value) _mm512_set1_epi64(value)
#define CHOOSE_int32_t(v, mask, other) _mm512_mask_mov_epi32(v, mask, other)
#define CHOOSE_int64_t(v, mask, other) _mm512_mask_mov_epi64(v, mask, other)

#define PAIR_EXCEPT(name, from, to)                                                                                    \
    static void pair_except_##name(const void *in, const uint64_t *bits, uint64_t count, void *inputs, void *targets)  \
    {                                                                                                                  \
        enum { LANES = 64 / sizeof(to) };                                                                              \
        const from *tokens = in;                                                                                       \
        const __m512i ignore = SET_##to(TOKMAP_IGNORE);                                                                \
        to *left = inputs, *right = targets;                                                                           \
        uint64_t j = before_line(left, sizeof(to), count);                                                             \
        if (j) {                                                                                                       \
            const uint32_t mask = (1u << j) - 1;                                                                       \
            const __m512i next = PART_##name(mask, tokens + 1);                                                        \
            STORE_PART_##to(left, mask, PART_##name(mask, tokens));                                                    \
            STORE_PART_##to(right, mask, CHOOSE_##to(next, BITS_##to(bits, 0, j), ignore));                            \
        }                                                                                                              \
        for (; j + LANES <= count; j += LANES) {                                                                       \
            const __m512i next = LOAD_##name(tokens + j + 1);                                                          \
            _mm512_storeu_si512((void *)(left + j), LOAD_##name(tokens + j));                                          \
            _mm512_storeu_si512((void *)(right + j), CHOOSE_##to(next, BITS_##to(bits, j, LANES), ignore));            \
        }                                                                                                              \
        if (j < count) {                                                                                               \
            const uint32_t mask = (1u << (count - j)) - 1;                                                             \
            const __m512i next = PART_##name(mask, tokens + j + 1);                                                    \
            STORE_PART_##to(left + j, mask, PART_##name(mask, tokens + j));                                            \
            STORE_PART_##to(right + j, mask, CHOOSE_##to(next, BITS_##to(bits, j, count - j), ignore));                \
        }                                                                                                              \
    }
PAIR_EXCEPT(16_32, uint16_t, int32_t)
PAIR_EXCEPT(16_64, uint16_t, int64_t)
PAIR_EXCEPT(32_32, uint32_t, int32_t)
PAIR_EXCEPT(32_64, uint32_t, int64_t)

#define ZEROS(size, to)                                                                                                \
    static void zeros_##size(const uint64_t *bits, uint64_t count, void *out)                                          \
    {                                                                                                                  \
        enum { LANES = 512 / size };                                                                                   \
        const __m512i zero = _mm512_setzero_si512(), one = SET_##to(1);                                                \
        to *flags = out;                                                                                               \
        uint64_t j = 0;                                                                                                \
        for (; j + LANES <= count; j += LANES)                                                                         \
            _mm512_storeu_si512((void *)(flags + j), CHOOSE_##to(one, BITS_##to(bits, j, LANES), zero));               \
        if (j < count)                                                                                                 \
            STORE_PART_##to(flags + j, (1u << (count - j)) - 1,                                                        \
                            CHOOSE_##to(one, BITS_##to(bits, j, count - j), zero));                                    \
    }
ZEROS(32, int32_t)
ZEROS(64, int64_t)

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

static void fill_32(int64_t value, uint64_t count, void *out)
{
    char *to = out;
    __m512i values = _mm512_set1_epi32((int)value);
    uint64_t j = 0;
    for (; j + 16 <= count; j += 16)
        _mm512_storeu_si512(to + j * 4, values);
    if (j < count)
        _mm512_mask_storeu_epi32(to + j * 4, (__mmask16)((1u << (count - j)) - 1), values);
}

static void fill_64(int64_t value, uint64_t count, void *out)
{
    char *to = out;
    __m512i values = _mm512_set1_epi64(value);
    uint64_t j = 0;
    for (; j + 8 <= count; j += 8)
        _mm512_storeu_si512(to + j * 8, values);
    if (j < count)
        _mm512_mask_storeu_epi64(to + j * 8, (__mmask8)((1u << (count - j)) - 1), values);
}

/* Words whose bits are all 0 are common and are skipped. */
#define PUT(size, LANES, mask_t)                                                                                       \
    static void put_##size(const uint64_t *bits, int64_t value, uint64_t count, void *out)                             \
    {                                                                                                                  \
        char *to = out;                                                                                                \
        const __m512i values = SET_##size(value);                                                                      \
        for (uint64_t j = 0; j < count; j += 64) {                                                                     \
            uint64_t word = bits[j / 64] & ~(uint64_t)0 >> (count - j < 64 ? 64 - (count - j) : 0);                    \
            for (uint64_t at = j; word; word >>= (LANES), at += (LANES))                                               \
                _mm512_mask_storeu_epi##size(to + at * (size / 8), (mask_t)word, values);                              \
        }                                                                                                              \
    }
#define SET_32(value) _mm512_set1_epi32((int)(value))
#define SET_64(value) _mm512_set1_epi64(value)
PUT(32, 16, __mmask16)
PUT(64, 8, __mmask8)

/* targets_ahead. Element e of the output is token 1 + e / ahead + e % ahead, so 16 elements that begin at e need at
 * most 16 tokens from token 1 + e / ahead on if ahead is at most AHEAD_MOST: one load and one permutation, of which
 * there are as many as remainders of e. */
#define AHEAD_MOST 15

static void ahead_indices(uint64_t ahead, __m512i indices[AHEAD_MOST])
{
    for (uint32_t first = 0; first < ahead; first++) {
        uint32_t lanes[16];
        for (uint32_t i = 0; i < 16; i++)
            lanes[i] = (first + i) / (uint32_t)ahead + (first + i) % (uint32_t)ahead;
        indices[first] = _mm512_loadu_si512(lanes);
    }
}

#define STORE_WIDE_int32_t(p, v) _mm512_storeu_si512((void *)(p), v)
#define STORE_WIDE_int64_t(p, v)                                                                                       \
    (_mm512_storeu_si512((void *)(p), _mm512_cvtepu32_epi64(_mm512_castsi512_si256(v))),                               \
     _mm512_storeu_si512((void *)((p) + 8), _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(v, 1))))

#define AHEAD(name, from, to, LOAD, number, type)                                                                      \
    static void ahead_##name(const void *in, uint64_t count, uint64_t ahead, void *out)                                \
    {                                                                                                                  \
        const from *tokens = in;                                                                                       \
        to *ids = out, *end = ids + count * ahead;                                                                     \
        __m512i indices[AHEAD_MOST];                                                                                   \
        uint64_t j = 0, first = 0;                                                                                     \
        if (ahead > AHEAD_MOST) {                                                                                      \
            expand_plain.ahead[number][type](in, count, ahead, out);                                                   \
            return;                                                                                                    \
        }                                                                                                              \
        ahead_indices(ahead, indices);                                                                                 \
        for (; end - ids >= 16 && j + 17 <= count + ahead; ids += 16) {                                                \
            STORE_WIDE_##to(ids, _mm512_permutexvar_epi32(indices[first], LOAD(tokens + j + 1)));                      \
            for (first += 16; first >= ahead; first -= ahead)                                                          \
                j++;                                                                                                   \
        }                                                                                                              \
        for (; ids < end; ids++) {                                                                                     \
            to value = (to)tokens[j + 1 + first];                                                                      \
            memcpy(ids, &value, sizeof value);                                                                         \
            if (++first == ahead)                                                                                      \
                first = 0, j++;                                                                                        \
        }                                                                                                              \
    }
AHEAD(16_32, uint16_t, int32_t, LOAD_16_32, 0, 0)
AHEAD(16_64, uint16_t, int64_t, LOAD_16_32, 0, 1)
AHEAD(32_32, uint32_t, int32_t, LOAD_32_32, 1, 0)
AHEAD(32_64, uint32_t, int64_t, LOAD_32_32, 1, 1)

const struct expand_kernels expand_avx512 = {
    "avx512",
    {{one_16_32, one_16_64}, {one_32_32, one_32_64}},
    {{pair_16_32, pair_16_64}, {pair_32_32, pair_32_64}},
    {{pair_except_16_32, pair_except_16_64}, {pair_except_32_32, pair_except_32_64}},
    {zeros_32, zeros_64},
    {count_32, count_64},
    {fill_32, fill_64},
    {put_32, put_64},
    {{ahead_16_32, ahead_16_64}, {ahead_32_32, ahead_32_64}},
};
#endif
