/* SPDX-License-Identifier: MIT */
/*
 * bpe_encode_x86.h - steps 3 and 4 of bpe_encode.c for processors with AVX2 and AES: keys, and lookups.
 *
 * Only bpe_encode_avx2.c and bpe_encode_vbmi.c include this header. Each has defined three functions before, and is
 * compiled for its own instructions:
 *
 *     uint32_t long_ids(state, hash, bytes, count, into, wide)
 *
 * writes the ids of a piece of `count` bytes from the second cache, in the usual case: the piece is in the line that
 * its hash selects, and all of it fits the line. It returns the number of ids, or 0 if bpe_miss() has to find them. It
 * may write 64 bytes.
 *
 *     uint32_t many_keys(state, text, positions, count)
 *
 * does step 3 for the first pieces, many at once, and returns for how many: 0 if it cannot.
 *
 *     void copy_longs(state, text, positions, wide)
 *
 * makes step 4 find pieces of state->batch_longs without a branch of their own, or does nothing. Where a line of the
 * second cache holds a piece, and few ids, it puts key and ids into bucket BPE_COPIES + i, and has piece i looked up
 * there. Which pieces are long cannot be predicted, and a wrong prediction costs as much as three lookups.
 */
#ifndef TOKMAP_BPE_BPE_ENCODE_X86_H
#define TOKMAP_BPE_BPE_ENCODE_X86_H

#include <immintrin.h>

#include "bpe_encode.h"
#include "bpe_key_x86.h"

/* Step 3. A piece near the end of the text, which fewer than 16 bytes follow, is copied byte by byte. */
static inline __attribute__((always_inline)) void make_keys_x86(struct bpe_state *state, const uint8_t *text,
                                                                const uint16_t *positions, uint32_t count)
{
    const __m128i salt = salt_of(state->seed);
    const uint32_t mask = state->bucket_mask;
    const struct bpe_bucket *const buckets = state->buckets;
    uint32_t i = many_keys(state, text, positions, count), from = positions[i];
    const bool near_end = state->text_end - (text + positions[count - 1]) < 16;
#pragma GCC unroll 4
    for (; i < count; i++) {
        const uint32_t to = positions[i + 1], bytes = to - from, few = bytes < 16 ? bytes : 16;
        const uint8_t *const at = text + from;
        const __m128i *const row = (const __m128i *)(const void *)key_rows[few];
        __m128i key;
        if (__builtin_expect(near_end, 0) && state->text_end - at < 16) {
            uint8_t copy[16] = {0};
            __builtin_memcpy(copy, at, few);
            key = _mm_loadu_si128((const __m128i *)(const void *)copy);
        } else {
            key = _mm_loadu_si128((const __m128i *)(const void *)at);
        }
        key = _mm_or_si128(_mm_and_si128(key, _mm_load_si128(row)), _mm_load_si128(row + 1));
        const uint32_t bucket = key_hash(salt, key) & mask;
        const void *line = &buckets[bucket];
        _mm_storeu_si128((__m128i *)(void *)&state->keys[i], key);
        state->batch_places[i] = bucket << BPE_BUCKET_SHIFT;
        if (__builtin_expect(bytes > 15, 0))
            line = bpe_long_line(state, i, at, bytes);
        _mm_prefetch((const char *)line, _MM_HINT_T0);
        from = to;
    }
}

/* Writes the ids of piece i, whose bucket does not hold them. has_entry: it holds the key. Returns the number of ids.
 * Not inlined, so that the registers of look_up_x86() are free for what is found. */
static __attribute__((noinline)) uint32_t not_inline(struct bpe_state *state, const uint8_t *text,
                                                     const uint16_t *positions, uint32_t i, bool has_entry,
                                                     uint8_t *into, const void *tokens)
{
    const uint32_t bytes = (uint32_t)(positions[i + 1] - positions[i]);
    uint32_t found = 0;
    if (has_entry || bytes > 15) {
        const uint64_t hash = bytes > 15 ? state->keys[i].low : bpe_short_hash(state->seed, state->keys[i]);
        found = long_ids(state, hash, text + positions[i], bytes, into, state->model->wide);
    }
    return found ? found : (uint32_t)bpe_miss_batch(state, text, positions, i, into, tokens);
}

#define PLACE sizeof(uint32_t)
_Static_assert(sizeof(struct bpe_key) == 4 * PLACE, "look_up() finds keys by the offsets of places");

/* Step 4. again: buckets are prefetched once more, BPE_AGAIN pieces ahead. After the last piece come places of earlier
 * batches, which do no harm. */
static inline __attribute__((always_inline)) size_t look_up_x86(struct bpe_state *state, const uint8_t *text,
                                                                const uint16_t *positions, uint32_t count, void *tokens,
                                                                bool wide, bool again)
{
    const __m128i plain = wide ? _mm_set_epi32(-1, -1, -1, 0x0FFFFFFF) : _mm_set_epi16(0, -1, -1, -1, -1, -1, -1, -1);
    const uint8_t *const buckets = (const uint8_t *)state->buckets;
    const uint8_t *const places = (const uint8_t *)state->batch_places, *const keys = (const uint8_t *)state->keys;
    __m128i largest = _mm_setzero_si128();
    uint8_t *into = tokens;
    /* Loads and instructions bound this loop. So one offset serves both arrays: that of the place, and four times it
     * is that of the key. */
    for (size_t at = 0; at < PLACE * count; at += PLACE) {
        const struct bpe_bucket *bucket =
            (const struct bpe_bucket *)(const void *)(buckets + *(const uint32_t *)(const void *)(places + at));
        if (again)
            _mm_prefetch((const char *)(buckets + *(const uint32_t *)(const void *)(places + at + BPE_AGAIN * PLACE)),
                         _MM_HINT_T0);
        const __m256i key =
            _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(keys + 4 * at)));
        const __m256d halves = _mm256_castsi256_pd(
            _mm256_cmpeq_epi64(key, _mm256_load_si256((const __m256i *)(const void *)bucket->keys)));
        /* Bits 0 and 1: the first key is equal; bits 2 and 3: the second. What follows from these bits is computed, and
         * is not in a table. */
        const uint32_t equal = (uint32_t)_mm256_movemask_pd(_mm256_and_pd(halves, _mm256_permute_pd(halves, 5)));
        const uint64_t *value = (const uint64_t *)(const void *)((const uint8_t *)bucket->values + 4 * (equal & 4));
        const __m128i whole = _mm_load_si128((const __m128i *)(const void *)value);
        const size_t ids = wide ? (uint32_t)_mm_cvtsi128_si32(whole) >> 28 : (size_t)(value[1] >> 48);
        if (__builtin_expect(!equal | !ids, 0)) {
            into +=
                not_inline(state, text, positions, (uint32_t)(at / PLACE), equal != 0, into, tokens) * (wide ? 4 : 2);
            continue;
        }
        const __m128i found = _mm_and_si128(whole, plain);
        _mm_storeu_si128((__m128i *)(void *)into, found);
        largest = wide ? _mm_max_epu32(largest, found) : _mm_max_epu16(largest, found);
        into += ids * (wide ? 4 : 2);
    }
    uint32_t most[4];
    uint16_t most16[8];
    _mm_storeu_si128((__m128i *)(void *)most, largest);
    _mm_storeu_si128((__m128i *)(void *)most16, largest);
    for (int i = 0; i < (wide ? 4 : 8); i++) {
        const uint64_t id = wide ? most[i] : most16[i];
        state->largest = id > state->largest ? id : state->largest;
    }
    return (size_t)(into - (uint8_t *)tokens) / (wide ? 4 : 2);
}

static inline size_t pieces(struct bpe_state *state, const uint8_t *text, const uint16_t *positions, uint32_t count,
                            void *tokens)
{
    state->batch_long_count = 0;
    make_keys_x86(state, text, positions, count);
    if (state->batch_long_count)
        copy_longs(state, text, positions, state->model->wide);
    if (__builtin_expect(state->strange >= BPE_STRANGE, 0))
        return state->model->wide ? look_up_x86(state, text, positions, count, tokens, true, true)
                                  : look_up_x86(state, text, positions, count, tokens, false, true);
    return state->model->wide ? look_up_x86(state, text, positions, count, tokens, true, false)
                              : look_up_x86(state, text, positions, count, tokens, false, false);
}

#endif
