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
#include <string.h>

#include "common/bytes.h"

#define LOAD_16_32(p) _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define LOAD_16_64(p) _mm256_cvtepu16_epi64(_mm_loadl_epi64((const __m128i *)(const void *)(p)))
#define LOAD_32_32(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define LOAD_32_64(p) _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)(const void *)(p)))

/* Which element the second vector of an output begins with: the first one at a multiple of 32 bytes. It is 0, so that
 * there is no further first vector, where every vector begins at such a multiple or none can. */
static inline uint64_t before_vector(const void *out, uint64_t size, uint64_t count)
{
    const uint64_t bytes = -(uint64_t)(uintptr_t)out % 32;
    return bytes % size || count * size < 32 ? 0 : bytes / size;
}

#define EXPAND(name, from, to, tail_load)                                                                              \
    static void one_##name(const void *in, uint64_t count, void *out)                                                  \
    {                                                                                                                  \
        enum { LANES = 32 / sizeof(to) };                                                                              \
        const from *tokens = in;                                                                                       \
        to *ids = out;                                                                                                 \
        uint64_t j = before_vector(ids, sizeof(to), count);                                                            \
        if (j)                                                                                                         \
            _mm256_storeu_si256((__m256i *)(void *)ids, LOAD_##name(tokens));                                          \
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
        uint64_t j = before_vector(left, sizeof(to), count);                                                           \
        if (j) {                                                                                                       \
            _mm256_storeu_si256((__m256i *)(void *)left, LOAD_##name(tokens));                                         \
            _mm256_storeu_si256((__m256i *)(void *)right, LOAD_##name(tokens + 1));                                    \
        }                                                                                                              \
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

/* Returns lanes of which all bits are 1 where the bit of the element is 1, for the 8 or 4 elements from j on. The bits
 * of each group of lanes select their lanes. */
static inline __m256i lanes_int32_t(const uint64_t *bits, uint64_t j)
{
    const __m256i lanes = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i group = _mm256_set1_epi32((int)expand_bits_from(bits, j, 8));
    return _mm256_cmpeq_epi32(_mm256_and_si256(group, lanes), lanes);
}

static inline __m256i lanes_int64_t(const uint64_t *bits, uint64_t j)
{
    const __m256i lanes = _mm256_setr_epi64x(1, 2, 4, 8);
    const __m256i group = _mm256_set1_epi64x((long long)expand_bits_from(bits, j, 4));
    return _mm256_cmpeq_epi64(_mm256_and_si256(group, lanes), lanes);
}

#define SET_int32_t(value) _mm256_set1_epi32((int)(value))
#define SET_int64_t(value) _mm256_set1_epi64x(value)

#define PAIR_EXCEPT(name, from, to, tail_load)                                                                         \
    static void pair_except_##name(const void *in, const uint64_t *bits, uint64_t count, void *inputs, void *targets)  \
    {                                                                                                                  \
        enum { LANES = 32 / sizeof(to) };                                                                              \
        const from *tokens = in;                                                                                       \
        const __m256i ignore = SET_##to(TOKMAP_IGNORE);                                                                \
        to *left = inputs, *right = targets;                                                                           \
        uint64_t j = before_vector(left, sizeof(to), count);                                                           \
        if (j) {                                                                                                       \
            const __m256i next = LOAD_##name(tokens + 1);                                                              \
            _mm256_storeu_si256((__m256i *)(void *)left, LOAD_##name(tokens));                                         \
            _mm256_storeu_si256((__m256i *)(void *)right, _mm256_blendv_epi8(next, ignore, lanes_##to(bits, 0)));      \
        }                                                                                                              \
        for (; j + LANES <= count; j += LANES) {                                                                       \
            const __m256i next = LOAD_##name(tokens + j + 1);                                                          \
            _mm256_storeu_si256((__m256i *)(void *)(left + j), LOAD_##name(tokens + j));                               \
            _mm256_storeu_si256((__m256i *)(void *)(right + j),                                                        \
                                _mm256_blendv_epi8(next, ignore, lanes_##to(bits, j)));                                \
        }                                                                                                              \
        for (; j < count; j++) {                                                                                       \
            to one = (to)tail_load(tokens + j), next = (to)tail_load(tokens + j + 1);                                  \
            if (bits[j / 64] >> (j % 64) & 1)                                                                          \
                next = TOKMAP_IGNORE;                                                                                  \
            memcpy(left + j, &one, sizeof one);                                                                        \
            memcpy(right + j, &next, sizeof next);                                                                     \
        }                                                                                                              \
    }
PAIR_EXCEPT(16_32, uint16_t, int32_t, load16)
PAIR_EXCEPT(16_64, uint16_t, int64_t, load16)
PAIR_EXCEPT(32_32, uint32_t, int32_t, load32)
PAIR_EXCEPT(32_64, uint32_t, int64_t, load32)

#define ZEROS(size, to)                                                                                                \
    static void zeros_##size(const uint64_t *bits, uint64_t count, void *out)                                          \
    {                                                                                                                  \
        enum { LANES = 256 / size };                                                                                   \
        const __m256i one = SET_##to(1);                                                                               \
        to *flags = out;                                                                                               \
        uint64_t j = 0;                                                                                                \
        for (; j + LANES <= count; j += LANES)                                                                         \
            _mm256_storeu_si256((__m256i *)(void *)(flags + j), _mm256_andnot_si256(lanes_##to(bits, j), one));        \
        for (; j < count; j++)                                                                                         \
            store##size(flags + j, ~bits[j / 64] >> (j % 64) & 1);                                                     \
    }
ZEROS(32, int32_t)
ZEROS(64, int64_t)

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

static void fill_32(int64_t value, uint64_t count, void *out)
{
    char *to = out;
    __m256i values = _mm256_set1_epi32((int)value);
    uint64_t j = 0;
    for (; j + 8 <= count; j += 8)
        _mm256_storeu_si256((__m256i *)(void *)(to + j * 4), values);
    for (; j < count; j++)
        store32(to + j * 4, (uint32_t)value);
}

static void fill_64(int64_t value, uint64_t count, void *out)
{
    char *to = out;
    __m256i values = _mm256_set1_epi64x(value);
    uint64_t j = 0;
    for (; j + 4 <= count; j += 4)
        _mm256_storeu_si256((__m256i *)(void *)(to + j * 8), values);
    for (; j < count; j++)
        store64(to + j * 8, (uint64_t)value);
}

/* Words whose bits are all 0 are common and are skipped. The bits of each group of lanes select their lanes. */
static void put_32(const uint64_t *bits, int64_t value, uint64_t count, void *out)
{
    char *to = out;
    const __m256i values = _mm256_set1_epi32((int)value), lanes = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    for (uint64_t j = 0; j < count; j += 64) {
        uint64_t word = bits[j / 64] & ~(uint64_t)0 >> (count - j < 64 ? 64 - (count - j) : 0);
        for (uint64_t at = j; word; word >>= 8, at += 8) {
            __m256i chosen = _mm256_and_si256(_mm256_set1_epi32((int)(word & 0xff)), lanes);
            _mm256_maskstore_epi32((int *)(void *)(to + at * 4), _mm256_cmpeq_epi32(chosen, lanes), values);
        }
    }
}

static void put_64(const uint64_t *bits, int64_t value, uint64_t count, void *out)
{
    char *to = out;
    const __m256i values = _mm256_set1_epi64x(value), lanes = _mm256_setr_epi64x(1, 2, 4, 8);
    for (uint64_t j = 0; j < count; j += 64) {
        uint64_t word = bits[j / 64] & ~(uint64_t)0 >> (count - j < 64 ? 64 - (count - j) : 0);
        for (uint64_t at = j; word; word >>= 4, at += 4) {
            __m256i chosen = _mm256_and_si256(_mm256_set1_epi64x((long long)(word & 0xf)), lanes);
            _mm256_maskstore_epi64((long long *)(void *)(to + at * 8), _mm256_cmpeq_epi64(chosen, lanes), values);
        }
    }
}

/* targets_ahead. Element e of the output is token 1 + e / ahead + e % ahead, so 8 elements that begin at e need at most
 * 8 tokens from token 1 + e / ahead on if ahead is at most AHEAD_MOST: one load and one permutation, of which there are
 * as many as remainders of e. */
#define AHEAD_MOST 7

static void ahead_indices(uint64_t ahead, __m256i indices[AHEAD_MOST])
{
    for (uint32_t first = 0; first < ahead; first++) {
        uint32_t lanes[8];
        for (uint32_t i = 0; i < 8; i++)
            lanes[i] = (first + i) / (uint32_t)ahead + (first + i) % (uint32_t)ahead;
        indices[first] = _mm256_loadu_si256((const __m256i *)(const void *)lanes);
    }
}

#define STORE_WIDE_int32_t(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define STORE_WIDE_int64_t(p, v)                                                                                       \
    (_mm256_storeu_si256((__m256i *)(void *)(p), _mm256_cvtepu32_epi64(_mm256_castsi256_si128(v))),                    \
     _mm256_storeu_si256((__m256i *)(void *)((p) + 4), _mm256_cvtepu32_epi64(_mm256_extracti128_si256(v, 1))))

#define AHEAD(name, from, to, LOAD, number, type)                                                                      \
    static void ahead_##name(const void *in, uint64_t count, uint64_t ahead, void *out)                                \
    {                                                                                                                  \
        const from *tokens = in;                                                                                       \
        to *ids = out, *end = ids + count * ahead;                                                                     \
        __m256i indices[AHEAD_MOST];                                                                                   \
        uint64_t j = 0, first = 0;                                                                                     \
        if (ahead > AHEAD_MOST) {                                                                                      \
            expand_plain.ahead[number][type](in, count, ahead, out);                                                   \
            return;                                                                                                    \
        }                                                                                                              \
        ahead_indices(ahead, indices);                                                                                 \
        for (; end - ids >= 8 && j + 9 <= count + ahead; ids += 8) {                                                   \
            STORE_WIDE_##to(ids, _mm256_permutevar8x32_epi32(LOAD(tokens + j + 1), indices[first]));                   \
            for (first += 8; first >= ahead; first -= ahead)                                                           \
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

const struct expand_kernels expand_avx2 = {
    "avx2",
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
