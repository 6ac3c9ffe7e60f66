/* SPDX-License-Identifier: MIT */
/*
 * bpe_encode_scalar.c - steps 2 to 4 of bpe_encode.c for any processor: positions from bitmaps, keys, and lookups.
 */
#include <string.h>

#include "bpe_encode.h"
#include "common/bytes.h"

uint32_t bpe_hash_scalar(struct table_key seed, struct bpe_key key)
{
    return (uint32_t)table_mix(seed, key.low, key.high);
}

uint32_t bpe_positions_scalar(uint16_t *positions, const uint64_t *words, size_t count)
{
    uint32_t made = 0;
    for (size_t i = 0; i < count; i++)
        for (uint64_t rest = words[i]; rest; rest &= rest - 1)
            positions[made++] = (uint16_t)(64 * i + (size_t)__builtin_ctzll(rest));
    return made;
}

static const uint64_t bpe_key_masks[16][2] = {
#define ONES(n) ((n) <= 0 ? 0 : (n) >= 8 ? ~(uint64_t)0 : ((uint64_t)1 << 8 * ((n)&7)) - 1)
#define ROW(n)                                                                                                         \
    {                                                                                                                  \
        ONES(n), ONES((n)-8)                                                                                           \
    }
    ROW(0), ROW(1), ROW(2),  ROW(3),  ROW(4),  ROW(5),  ROW(6),  ROW(7),
    ROW(8), ROW(9), ROW(10), ROW(11), ROW(12), ROW(13), ROW(14), ROW(15)};

/* Returns the key of a piece. A piece of more than 15 bytes has the length 255, which no entry has. Both halves are
 * loaded whole and masked: bytes copied one by one, and read back as words, would stall the processor for every piece.
 * readable: how many bytes of text may be read. */
static inline struct bpe_key key_at(const uint8_t *at, uint32_t bytes, size_t readable)
{
    struct bpe_key key = {0, 0};
    if (bytes > 15)
        return (struct bpe_key){0, (uint64_t)255 << 56};
    if (readable < 16)
        return bpe_key_of(at, bytes);
    key.low = load64(at) & bpe_key_masks[bytes][0];
    key.high = (load64(at + 8) & bpe_key_masks[bytes][1]) | (uint64_t)bytes << 56;
    return key;
}

/* Step 3. */
static void make_keys(struct bpe_state *state, const uint8_t *text, const uint16_t *positions, uint32_t count)
{
    const struct table_key seed = state->seed;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *at = text + positions[i];
        const uint32_t bytes = (uint32_t)positions[i + 1] - positions[i];
        struct bpe_key key = key_at(at, bytes, (size_t)(state->text_end - at));
        const uint32_t bucket = bpe_hash_scalar(seed, key) & state->bucket_mask;
        const void *line = &state->buckets[bucket];
        if (bytes > 15) {
            key.low = bpe_long_hash(seed, at, bytes);
            line = bpe_long_at(state, bpe_long_tag(key.low), 0);
        }
        state->keys[i] = key;
        state->batch_places[i] = bucket << BPE_BUCKET_SHIFT;
        __builtin_prefetch(line);
    }
}

/* Step 4. */
static inline __attribute__((always_inline)) size_t look_up(struct bpe_state *state, const uint8_t *text,
                                                            const uint16_t *positions, uint32_t count, void *tokens,
                                                            bool wide)
{
    const uint64_t plain_low = wide ? 0xFFFFFFFF0FFFFFFF : ~(uint64_t)0,
                   plain_high = wide ? ~(uint64_t)0 : ~(uint64_t)0 >> 16;
    uint8_t *into = tokens;
    for (uint32_t i = 0; i < count; i++) {
        const struct bpe_bucket *bucket = bpe_batch_bucket(state, i);
        const struct bpe_key key = state->keys[i];
        const uint64_t first = (bucket->keys[0].low ^ key.low) | (bucket->keys[0].high ^ key.high);
        const uint64_t second = (bucket->keys[1].low ^ key.low) | (bucket->keys[1].high ^ key.high);
        const uint64_t *value = bucket->values[first != 0];
        const uint32_t ids = (uint32_t)(wide ? value[0] >> 28 & 15 : value[1] >> 48);
        if (__builtin_expect((first && second) | !ids, 0)) {
            into += bpe_miss(state, text, positions[i], positions[i + 1], into) * (wide ? 4 : 2);
            continue;
        }
        const uint64_t plain[2] = {value[0] & plain_low, value[1] & plain_high};
        memcpy(into, plain, 16);
        into += ids * (wide ? 4 : 2);
    }
    return (size_t)(into - (uint8_t *)tokens) / (wide ? 4 : 2);
}

/* Returns the largest of `count` ids. */
static uint32_t largest_id(const void *tokens, size_t count, bool wide)
{
    const uint32_t *ids = tokens;
    const uint16_t *narrow = tokens;
    uint32_t largest = 0;
    uint16_t largest_narrow = 0;
    for (size_t i = 0; wide && i < count; i++)
        largest = ids[i] > largest ? ids[i] : largest;
    for (size_t i = 0; !wide && i < count; i++)
        largest_narrow = narrow[i] > largest_narrow ? narrow[i] : largest_narrow;
    return wide ? largest : largest_narrow;
}

size_t bpe_pieces_scalar(struct bpe_state *state, const uint8_t *text, const uint16_t *positions, uint32_t count,
                         void *tokens)
{
    make_keys(state, text, positions, count);
    const size_t made = state->model->wide ? look_up(state, text, positions, count, tokens, true)
                                           : look_up(state, text, positions, count, tokens, false);
    state->largest = max64(state->largest, largest_id(tokens, made, state->model->wide));
    return made;
}
