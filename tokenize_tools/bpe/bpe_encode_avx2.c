/*
 * bpe_encode_avx2.c - steps 2 to 4 of bpe_encode.c with AVX2, AES, BMI2, and POPCNT: positions from bitmaps, keys, and
 * lookups.
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
    const struct bpe_long *line = bpe_long_at(state, hash);
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

/* The number of bytes of each of MANY pieces selects a row of key_rows[]; all numbers and rows are found at once. AVX2
 * has no AES of several keys, so they are hashed one by one. */
static inline __attribute__((always_inline)) uint32_t many_keys(struct bpe_state *state, const uint8_t *text,
                                                                const uint16_t *positions, uint32_t count)
{
    const __m128i salt = salt_of(state->seed);
    const uint32_t mask = state->bucket_mask;
    const struct bpe_bucket *const buckets = state->buckets;
    uint32_t i = 0;
    for (; i + MANY <= count && state->text_end - (text + positions[i + MANY - 1]) >= 16; i += MANY) {
        const uint16_t *at = positions + i;
        const __m256i from = _mm256_loadu_si256((const __m256i *)(const void *)at);
        const __m256i to = _mm256_loadu_si256((const __m256i *)(const void *)(at + 1));
        const __m256i few = _mm256_min_epu16(_mm256_sub_epi16(to, from), _mm256_set1_epi16(16));
        uint16_t rows[MANY] __attribute__((aligned(32)));
        _mm256_store_si256((__m256i *)(void *)rows, _mm256_slli_epi16(few, KEY_ROW_BITS));
#pragma GCC unroll 16
        for (uint32_t k = 0; k < MANY; k++) {
            const __m128i *row = (const __m128i *)(const void *)((const uint8_t *)key_rows + rows[k]);
            __m128i key = _mm_loadu_si128((const __m128i *)(const void *)(text + at[k]));
            key = _mm_or_si128(_mm_and_si128(key, _mm_load_si128(row)), _mm_load_si128(row + 1));
            const uint32_t bucket = key_hash(salt, key) & mask;
            _mm_storeu_si128((__m128i *)(void *)&state->keys[i + k], key);
            state->batch_buckets[i + k] = bucket;
            _mm_prefetch((const char *)&buckets[bucket], _MM_HINT_T0);
        }
        uint32_t longer = (uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi16(few, _mm256_set1_epi16(15))) & 0x55555555;
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

uint32_t bpe_positions_avx2(uint16_t *positions, const uint64_t *words, size_t count)
{
    uint32_t made = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = (uint32_t)_mm_popcnt_u64(words[i]), base = (uint32_t)(64 * i);
        uint64_t rest = words[i];
        uint16_t *into = positions + made;
        /* The usual word has 10 to 16 starts. A loop whose end depends on their number would be mispredicted for most
         * words, so 16 positions are stored; those that are too many are overwritten later. */
#pragma GCC unroll 16
        for (uint32_t k = 0; k < 16; k++, rest = _blsr_u64(rest))
            into[k] = (uint16_t)(base + (uint32_t)_tzcnt_u64(rest));
        for (uint32_t k = 16; __builtin_expect(k < bits, 0); k++, rest = _blsr_u64(rest))
            into[k] = (uint16_t)(base + (uint32_t)_tzcnt_u64(rest));
        made += bits;
    }
    return made;
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
