/*
 * bpe_encode_avx2.c - steps 2 to 4 of bpe_encode.c with AVX2, AES, BMI2, and POPCNT: positions from bitmaps, keys, and
 * lookups.
 */
#include "bpe_encode.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

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

/* AVX2 has no AES of several keys at once. */
static inline uint32_t many_keys(const struct bpe_state *state, const uint8_t *text, const uint16_t *positions,
                                 uint32_t count)
{
    (void)state, (void)text, (void)positions, (void)count;
    return 0;
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
