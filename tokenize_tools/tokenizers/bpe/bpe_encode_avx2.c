/* SPDX-License-Identifier: MIT */
/*
 * bpe_encode_avx2.c - steps 2 to 4 of bpe_encode.c with AVX2, AES, BMI2, and POPCNT: positions from bitmaps, keys, and
 * lookups. Places of four keys from one register had 0.93 to 0.97 times the rate, and a load in place of a move from a
 * vector register 0.98, because loads bound the loop over keys.
 */
#include "bpe_encode.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#include "bpe_key_x86.h"

static inline bool equal_16(const uint8_t *a, const uint8_t *b)
{
    const __m128i equal = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)a),
                                         _mm_loadu_si128((const __m128i *)(const void *)b));
    return _mm_movemask_epi8(equal) == 0xFFFF;
}

/* Returns whether two ranges of at least 16 bytes are equal. The last 16 bytes are compared in any case, so no byte
 * outside of the ranges is read. */
static inline bool equal_long(const uint8_t *a, const uint8_t *b, uint32_t count)
{
    for (uint32_t i = 0; i + 16 < count; i += 16)
        if (!equal_16(a + i, b + i))
            return false;
    return equal_16(a + count - 16, b + count - 16);
}

static inline __attribute__((always_inline)) uint32_t
long_ids(struct bpe_state *state, uint64_t hash, const uint8_t *bytes, uint32_t count, uint8_t *into, bool wide)
{
    const struct bpe_long *line = bpe_long_at(state, bpe_long_tag(hash), 0);
    const uint32_t ids_bytes = line->ids * (wide ? 4u : 2u);
    if (line->tag != bpe_long_tag(hash) || line->bytes != count || ids_bytes + count > sizeof line->rest)
        return 0;
    const uint8_t *kept = line->rest + ids_bytes;
    if (count < 16 ? memcmp(kept, bytes, count) != 0 : !equal_long(kept, bytes, count))
        return 0;
    memcpy(into, line->rest, sizeof line->rest); /* all of it, because copying a constant number of bytes is fast */
    state->largest = line->largest > state->largest ? line->largest : state->largest;
    state->counts.long_found++;
    return line->ids;
}

#define MANY 16 /* pieces whose keys are made together */

/* Fills the keys of many pieces. A register holds two keys. The numbers of bytes of MANY pieces are found at once, and
 * those of the two pieces that come next are kept in the first bytes of its halves, where shuffles find them: one
 * spreads them over the halves, to be compared with the numbers of bytes, and one puts them into the keys' last bytes.
 * Loads bound this loop, so nothing here comes from a table. AVX2 has no AES of several keys, so they are hashed one by
 * one. */
static inline __attribute__((always_inline)) uint32_t many_keys(struct bpe_state *state, const uint8_t *text,
                                                                const uint16_t *positions, uint32_t count)
{
    const __m128i salt = salt_of(state->seed);
    const uint32_t mask = state->bucket_mask;
    const struct bpe_bucket *const buckets = state->buckets;
    const __m256i even_odd =
        _mm256_broadcastsi128_si256(_mm_set_epi8(15, 14, 11, 10, 7, 6, 3, 2, 13, 12, 9, 8, 5, 4, 1, 0));
    const __m256i numbers = /* of bytes; 127: byte 15 never has text */
        _mm256_broadcastsi128_si256(_mm_set_epi8(127, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
    const __m256i to_last =
        _mm256_broadcastsi128_si256(_mm_set_epi8(1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
    uint32_t i = 0;
    for (; i + MANY <= count && state->text_end - (text + positions[i + MANY - 1]) >= 16; i += MANY) {
        const uint16_t *at = positions + i;
        const __m256i from = _mm256_loadu_si256((const __m256i *)(const void *)at);
        const __m256i to = _mm256_loadu_si256((const __m256i *)(const void *)(at + 1));
        const __m256i few = _mm256_min_epu16(_mm256_sub_epi16(to, from), _mm256_set1_epi16(16));
        const __m256i is_long = _mm256_cmpgt_epi16(few, _mm256_set1_epi16(15));
        /* Byte 0: how many bytes; byte 1: the key's last byte. */
        __m256i both = _mm256_or_si256(few, _mm256_slli_epi16(_mm256_or_si256(few, is_long), 8));
        both = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(both, even_odd), _MM_SHUFFLE(3, 1, 2, 0));
#pragma GCC unroll 8
        for (uint32_t k = 0; k < MANY; k += 2) {
            __m256i key = _mm256_inserti128_si256(
                _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(text + at[k]))),
                _mm_loadu_si128((const __m128i *)(const void *)(text + at[k + 1])), 1);
            const __m256i bytes = _mm256_shuffle_epi8(both, _mm256_setzero_si256());
            key = _mm256_and_si256(key, _mm256_cmpgt_epi8(bytes, numbers));
            key = _mm256_or_si256(key, _mm256_shuffle_epi8(both, to_last));
            both = _mm256_srli_si256(both, 2);
            _mm256_storeu_si256((__m256i *)(void *)&state->keys[i + k], key);
            const uint32_t one = key_hash(salt, _mm256_castsi256_si128(key)) & mask;
            const uint32_t two = key_hash(salt, _mm256_extracti128_si256(key, 1)) & mask;
            state->batch_places[i + k] = one << BPE_BUCKET_SHIFT;
            state->batch_places[i + k + 1] = two << BPE_BUCKET_SHIFT;
            _mm_prefetch((const char *)&buckets[one], _MM_HINT_T0);
            _mm_prefetch((const char *)&buckets[two], _MM_HINT_T0);
        }
        uint32_t longer = (uint32_t)_mm256_movemask_epi8(is_long) & 0x55555555;
        for (; __builtin_expect(longer, 0); longer &= longer - 1) {
            const uint32_t k = (uint32_t)_tzcnt_u32(longer) / 2;
            _mm_prefetch((const char *)bpe_long_line(state, i + k, text + at[k], (uint32_t)(at[k + 1] - at[k])),
                         _MM_HINT_T0);
        }
    }
    return i;
}

static inline void copy_longs(struct bpe_state *state, const uint8_t *text, const uint16_t *positions, bool wide)
{
    (void)state, (void)text, (void)positions, (void)wide;
}

#include "bpe_encode_x86.h"

/* The numbers of the bits that are set in each byte, in ascending order: one in each byte of an entry. Example: the
 * entry of 0x91 is 0x070400. */
#define NUMBER(byte, k) (((byte) >> (k)&1 ? (uint64_t)(k) : 0) << 8 * __builtin_popcount((byte) & ((1u << (k)) - 1)))
#define NUMBERS(byte)                                                                                                  \
    (NUMBER(byte, 1) | NUMBER(byte, 2) | NUMBER(byte, 3) | NUMBER(byte, 4) | NUMBER(byte, 5) | NUMBER(byte, 6) |       \
     NUMBER(byte, 7))
#define NUMBERS_4(byte) NUMBERS(byte), NUMBERS((byte) + 1), NUMBERS((byte) + 2), NUMBERS((byte) + 3)
#define NUMBERS_16(byte) NUMBERS_4(byte), NUMBERS_4((byte) + 4), NUMBERS_4((byte) + 8), NUMBERS_4((byte) + 12)
#define NUMBERS_64(byte) NUMBERS_16(byte), NUMBERS_16((byte) + 16), NUMBERS_16((byte) + 32), NUMBERS_16((byte) + 48)
static const uint64_t bit_numbers[256]
    __attribute__((aligned(64))) = {NUMBERS_64(0), NUMBERS_64(64), NUMBERS_64(128), NUMBERS_64(192)};

/* Writes positions. Each byte of a word has up to eight starts, and all eight positions are stored; those that are too
 * many are overwritten by the next. So there is no branch: how many starts a word has cannot be predicted. */
uint32_t bpe_positions_avx2(uint16_t *positions, const uint64_t *words, size_t count)
{
    uint16_t *into = positions;
    __m128i base = _mm_setzero_si128();
    for (size_t i = 0; i < count; i++) {
        uint64_t rest = words[i];
#pragma GCC unroll 8
        for (uint32_t k = 0; k < 8; k++, rest >>= 8) {
            const uint8_t byte = (uint8_t)rest;
            const __m128i eight = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)&bit_numbers[byte]));
            _mm_storeu_si128((__m128i *)(void *)into, _mm_add_epi16(eight, base));
            into += _mm_popcnt_u32(byte);
            base = _mm_add_epi16(base, _mm_set1_epi16(8));
        }
    }
    return (uint32_t)(into - positions);
}

uint32_t bpe_hash_aes(struct table_key seed, struct bpe_key key)
{
    return key_hash(salt_of(seed), _mm_set_epi64x((long long)key.high, (long long)key.low));
}

size_t bpe_pieces_avx2(struct bpe_state *state, const uint8_t *text, const uint16_t *positions, uint32_t count,
                       void *tokens)
{
    return pieces(state, text, positions, count, tokens);
}

#endif
