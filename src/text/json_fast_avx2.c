/* SPDX-License-Identifier: MIT */
/*
 * json_fast_avx2.c - see json_fast.h.
 *
 * AVX2 cannot remove bytes from a register, as AVX-512 does with the backslashes. So a block is shortened in steps of
 * eight bytes: by a table of 256 rows, one for each choice of bytes that stay, which moves these to the front, and then
 * the bytes that go. All eight bytes are stored, and the next step begins after those that stay. This costs the same
 * wherever the backslashes are, whereas a loop from one to the next is mispredicted at nearly every one.
 *
 * Example: of  ab\nc\"d  (four and four bytes) the bits of the bytes that stay are 11011011 from the left. The row
 * gives the order 0 1 3 4 6 7 2 5. With the letters after the backslashes already replaced, "ab<newline>c"d" and two
 * backslashes are stored, and the next step writes over these two.
 *
 * A backslash that follows another, and \u, are left to the caller. They are rare in text.
 */
#include "json_fast.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TWICE(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)

struct block {
    __m256i bytes[2];
    uint64_t slashes; /* bit i: byte i is a backslash */
};

static inline uint64_t bits_of(__m256i first, __m256i second)
{
    return (uint32_t)_mm256_movemask_epi8(first) | (uint64_t)(uint32_t)_mm256_movemask_epi8(second) << 32;
}

static inline __attribute__((always_inline)) struct block block_load(const char *at)
{
    struct block block;
    const __m256i slash = _mm256_set1_epi8('\\');
    block.bytes[0] = _mm256_loadu_si256((const __m256i *)(const void *)at);
    block.bytes[1] = _mm256_loadu_si256((const __m256i *)(const void *)(at + 32));
    block.slashes = bits_of(_mm256_cmpeq_epi8(block.bytes[0], slash), _mm256_cmpeq_epi8(block.bytes[1], slash));
    return block;
}

/* Nonzero where a byte may follow a backslash, except u. Of such a byte, the high half selects one bit, and the low
 * half the bits of the high halves with which it makes one of " / \ b f n r t. */
static inline __m256i is_escape(__m256i bytes)
{
    const __m256i highs = TWICE(0, 0, 1, 0, 0, 2, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m256i lows = TWICE(0, 0, 1 | 4 | 8, 0, 8, 0, 4, 0, 0, 0, 0, 0, 2, 0, 4, 1);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(15));
    return _mm256_and_si256(_mm256_shuffle_epi8(highs, high), _mm256_shuffle_epi8(lows, bytes));
}

const char *json_skip_plain_avx2(const char *at, const char *end, bool *escaped)
{
    const __m256i quote = _mm256_set1_epi8('"'), last_control = _mm256_set1_epi8(0x1f), none = _mm256_setzero_si256();
    uint64_t escapes = 0;
    while (end - at > 64) {
        const struct block block = block_load(at);
        const __m256i *const bytes = block.bytes;
        const uint64_t slashes = slashes_begin(block.slashes), values = slashes << 1;
        uint64_t stops = (bits_of(_mm256_cmpeq_epi8(bytes[0], quote), _mm256_cmpeq_epi8(bytes[1], quote)) & ~values) |
                         bits_of(_mm256_cmpeq_epi8(_mm256_min_epu8(bytes[0], last_control), bytes[0]),
                                 _mm256_cmpeq_epi8(_mm256_min_epu8(bytes[1], last_control), bytes[1]));
        stops |= (values & bits_of(_mm256_cmpeq_epi8(is_escape(bytes[0]), none),
                                   _mm256_cmpeq_epi8(is_escape(bytes[1]), none))) >>
                 1;
        if (!block_skip(&at, &escapes, slashes, stops))
            break;
    }
    *escaped |= escapes != 0;
    return at;
}

/* Row m: the numbers of the bits that are set in m, then those of the others. */
#define AT(m, i) ((m) >> (i)&1)
#define BEFORE(m, i)                                                                                                   \
    (AT(m, 0) * ((i) > 0) + AT(m, 1) * ((i) > 1) + AT(m, 2) * ((i) > 2) + AT(m, 3) * ((i) > 3) +                       \
     AT(m, 4) * ((i) > 4) + AT(m, 5) * ((i) > 5) + AT(m, 6) * ((i) > 6))
#define SET(m) (BEFORE(m, 7) + AT(m, 7))
#define PLACE(m, i) (AT(m, i) ? BEFORE(m, i) : SET(m) + (i)-BEFORE(m, i))
#define PUT(m, i) ((uint64_t)(i) << 8 * PLACE(m, i))
#define ROW(m) (PUT(m, 0) | PUT(m, 1) | PUT(m, 2) | PUT(m, 3) | PUT(m, 4) | PUT(m, 5) | PUT(m, 6) | PUT(m, 7))
#define ROWS_4(m) ROW(m), ROW(m + 1), ROW(m + 2), ROW(m + 3)
#define ROWS_16(m) ROWS_4(m), ROWS_4(m + 4), ROWS_4(m + 8), ROWS_4(m + 12)
#define ROWS_64(m) ROWS_16(m), ROWS_16(m + 16), ROWS_16(m + 32), ROWS_16(m + 48)
static const uint64_t orders[256] = {ROWS_64(0), ROWS_64(64), ROWS_64(128), ROWS_64(192)};

/* Stores those of 16 bytes whose bits are set. May write over the 16 bytes at `into`. */
static inline __attribute__((always_inline)) char *store_kept(char *into, __m128i bytes, uint32_t kept)
{
    const __m128i order =
        _mm_add_epi8(_mm_set_epi64x((long long)orders[kept >> 8 & 255], (long long)orders[kept & 255]),
                     _mm_set_epi64x(0x0808080808080808, 0));
    const __m128i moved = _mm_shuffle_epi8(bytes, order);
    _mm_storel_epi64((__m128i *)(void *)into, moved);
    into += _mm_popcnt_u32(kept & 255);
    _mm_storel_epi64((__m128i *)(void *)into, _mm_unpackhi_epi64(moved, moved));
    return into + _mm_popcnt_u32(kept >> 8 & 255);
}

/* Replaces the bytes after backslashes. before: the 32 bytes before these. */
static inline __m256i values_of(__m256i bytes, __m256i before)
{
    const __m256i six = TWICE(0, 0, '\b', 0, 0, 0, '\f', 0, 0, 0, 0, 0, 0, 0, '\n', 0);
    const __m256i seven = TWICE(0, 0, '\r', 0, '\t', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m256i previous = _mm256_alignr_epi8(bytes, _mm256_permute2x128_si256(before, bytes, 0x21), 15);
    const __m256i letters = _mm256_cmpgt_epi8(bytes, _mm256_set1_epi8('\\'));
    const __m256i replaced = _mm256_and_si256(letters, _mm256_cmpeq_epi8(previous, _mm256_set1_epi8('\\')));
    /* Bit 4 of a letter, moved to bit 7, says whether its high half is 7. */
    const __m256i values = _mm256_blendv_epi8(_mm256_shuffle_epi8(six, bytes), _mm256_shuffle_epi8(seven, bytes),
                                              _mm256_slli_epi16(bytes, 3));
    return _mm256_blendv_epi8(bytes, values, replaced);
}

void json_unescape_plain_avx2(char **into, const char **at, const char *end)
{
    const char *from = *at;
    char *to = *into;
    while (end - from > 64) {
        const struct block block = block_load(from);
        const uint64_t slashes = block.slashes, values = slashes << 1;
        if (!slashes) {
            _mm256_storeu_si256((__m256i *)(void *)to, block.bytes[0]);
            _mm256_storeu_si256((__m256i *)(void *)(to + 32), block.bytes[1]);
            to += 64;
            from += 64;
            continue;
        }
        const __m256i u = _mm256_set1_epi8('u');
        if ((slashes & values) |
            (values & bits_of(_mm256_cmpeq_epi8(block.bytes[0], u), _mm256_cmpeq_epi8(block.bytes[1], u))))
            break;
        const __m256i first = values_of(block.bytes[0], _mm256_setzero_si256());
        const __m256i second = values_of(block.bytes[1], block.bytes[0]);
        const uint64_t kept = ~slashes;
        /* A backslash at the end belongs to the next block, and so it is left where it is: nothing is stored there,
         * unless no byte has gone, and then it is stored there again. */
        to = store_kept(to, _mm256_castsi256_si128(first), (uint32_t)kept & 0xFFFF);
        to = store_kept(to, _mm256_extracti128_si256(first, 1), (uint32_t)(kept >> 16) & 0xFFFF);
        to = store_kept(to, _mm256_castsi256_si128(second), (uint32_t)(kept >> 32) & 0xFFFF);
        to = store_kept(to, _mm256_extracti128_si256(second, 1), (uint32_t)(kept >> 48));
        from += slashes >> 63 ? 63 : 64;
    }
    *into = to;
    *at = from;
}

#else
typedef int json_fast_avx2_is_for_x86_64;
#endif
