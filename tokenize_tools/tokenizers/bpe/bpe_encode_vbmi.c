/* SPDX-License-Identifier: MIT */
/*
 * bpe_encode_vbmi.c - steps 2 to 4 of bpe_encode.c with AVX-512 (VBMI2, BMI2, VAES): positions from bitmaps, keys, and
 * lookups. A register holds four keys, so step 3 takes 16 pieces at once.
 *
 * Tried and not kept, as times the rate: buckets of 16 pieces prefetched after the keys of the next 16 (0.99 to 1.01);
 * keys 40 bytes off a multiple of 64, so that one in four is read from two lines (0.98 to 0.99 warm). On a processor
 * with Golden Cove cores, warm: batches of 192 or 256 pieces (0.99 to 1.02); step 4 two pieces at a time, and without
 * the mask of 16-bit ids (0.98 to 1.02).
 */
#include "bpe_encode.h"

#if defined(__x86_64__)

#include <immintrin.h>

/* Writes the ids of a piece from the second cache, in the usual case: the piece is in the line that its hash
 * selects, and all of it fits the line. Returns the number of ids, or 0 if bpe_miss() has to find them. */
static inline __attribute__((always_inline)) uint32_t
long_ids(struct bpe_state *state, uint64_t hash, const uint8_t *bytes, uint32_t count, uint8_t *into, bool wide)
{
    const struct bpe_long *line = bpe_long_at(state, bpe_long_tag(hash), 0);
    const uint32_t ids_bytes = line->ids * (wide ? 4u : 2u);
    if (line->tag != bpe_long_tag(hash) || line->bytes != count || ids_bytes + count > sizeof line->rest)
        return 0;
    const __mmask64 used = _bzhi_u64(~(uint64_t)0, count);
    if (_mm512_mask_cmpneq_epu8_mask(used, _mm512_maskz_loadu_epi8(used, bytes),
                                     _mm512_maskz_loadu_epi8(used, line->rest + ids_bytes)))
        return 0;
    _mm512_storeu_si512(into, _mm512_maskz_loadu_epi8(_bzhi_u64(~(uint64_t)0, ids_bytes), line->rest));
    state->largest = line->largest > state->largest ? line->largest : state->largest;
    state->counts.long_found++;
    return line->ids;
}

#define MANY 16 /* pieces whose keys are made together */

/* For a permutation that spreads numbers of a group's four pieces, which are among 16-bit numbers of MANY pieces, over
 * 16 bytes each. It is a table because gcc 12 puts such a constant together for each group, with more instructions
 * than everything else here takes. */
#define SIXTEEN(n) (n), (n), (n), (n), (n), (n), (n), (n), (n), (n), (n), (n), (n), (n), (n), (n)
#define FOUR_PIECES(n) SIXTEEN(n), SIXTEEN((n) + 2), SIXTEEN((n) + 4), SIXTEEN((n) + 6)
static const uint8_t spreads[4][64]
    __attribute__((aligned(64))) = {{FOUR_PIECES(0)}, {FOUR_PIECES(8)}, {FOUR_PIECES(16)}, {FOUR_PIECES(24)}};

/* Facts about MANY pieces, 16 bits for each. */
struct many {
    __m256i last; /* the key's last byte: how many bytes of text the key has, or 255 */
    __m256i away; /* bytes from the first piece of four to this one */
};

/* Returns the keys of pieces 4 * group to 4 * group + 3. near: all bytes of these keys are among the 64 bytes from the
 * first piece on, which can be read. Then one load and one permutation get them. */
static inline __attribute__((always_inline)) __m512i four_keys(const uint8_t *text, const uint16_t *positions,
                                                               uint32_t group, const struct many *many, bool near)
{
    const __m512i numbers = _mm512_broadcast_i32x4(_mm_set_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
    const __m512i spread = _mm512_load_si512(spreads[group]);
    const __m512i bytes = _mm512_permutexvar_epi8(spread, _mm512_castsi256_si512(many->last));
    const __m512i last = _mm512_maskz_mov_epi8(0x8000800080008000, bytes);
    const __mmask64 used = _mm512_mask_cmplt_epu8_mask(0x7FFF7FFF7FFF7FFF, numbers, bytes);
    const uint16_t *at = positions + 4 * group;
    __m512i key;
    if (near) {
        const __m512i away = _mm512_permutexvar_epi8(spread, _mm512_castsi256_si512(many->away));
        key =
            _mm512_mask_permutexvar_epi8(last, used, _mm512_add_epi8(away, numbers), _mm512_loadu_si512(text + at[0]));
    } else {
        key = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)(text + at[0])));
        key = _mm512_inserti32x4(key, _mm_loadu_si128((const __m128i *)(const void *)(text + at[1])), 1);
        key = _mm512_inserti32x4(key, _mm_loadu_si128((const __m128i *)(const void *)(text + at[2])), 2);
        key = _mm512_inserti32x4(key, _mm_loadu_si128((const __m128i *)(const void *)(text + at[3])), 3);
        key = _mm512_mask_mov_epi8(last, used, key);
    }
    return key;
}

/* Does three rounds, as key_hash() does. */
static inline __attribute__((always_inline)) __m512i four_hashes(__m512i salt, __m512i keys)
{
    return _mm512_aesenc_epi128(_mm512_aesenc_epi128(_mm512_aesenc_epi128(keys, salt), salt), salt);
}

/* Stores the keys of MANY pieces from piece i on, and where their buckets are. near: as in four_keys(), and true of all
 * four groups. */
static inline __attribute__((always_inline)) void store_keys(struct bpe_state *state, const uint8_t *text,
                                                             const uint16_t *positions, uint32_t i,
                                                             const struct many *many, bool near)
{
    const __m512i salt =
        _mm512_broadcast_i32x4(_mm_set_epi64x((long long)state->seed.high, (long long)state->seed.low));
    const __m512i firsts = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 28, 24, 20, 16, 12, 8, 4, 0);
    __m512i hashes[4];
#pragma GCC unroll 4
    for (uint32_t group = 0; group < 4; group++) {
        const __m512i keys = four_keys(text, positions + i, group, many, near);
        _mm512_storeu_si512(&state->keys[i + 4 * group], keys);
        hashes[group] = four_hashes(salt, keys);
    }
    const __m512i low = _mm512_permutex2var_epi32(hashes[0], firsts, hashes[1]);
    const __m512i high = _mm512_permutex2var_epi32(hashes[2], firsts, hashes[3]);
    const __m512i buckets = _mm512_and_si512(_mm512_inserti64x4(low, _mm512_castsi512_si256(high), 1),
                                             _mm512_set1_epi32((int)state->bucket_mask));
    /* Two stores, because Golden Cove waits with loads of the second half of one store of 64 bytes (1.06 to 1.09). */
    const __m512i places = _mm512_slli_epi32(buckets, BPE_BUCKET_SHIFT);
    _mm256_storeu_si256((__m256i *)(void *)&state->batch_places[i], _mm512_castsi512_si256(places));
    _mm256_storeu_si256((__m256i *)(void *)&state->batch_places[i + 8], _mm512_extracti64x4_epi64(places, 1));
}

static inline __attribute__((always_inline)) uint32_t many_keys(struct bpe_state *state, const uint8_t *text,
                                                                const uint16_t *positions, uint32_t count)
{
    uint32_t i = 0;
    for (; i + MANY <= count && state->text_end - (text + positions[i + MANY - 1]) >= 16; i += MANY) {
        const uint16_t *at = positions + i;
        const __m256i from = _mm256_loadu_si256((const __m256i *)(const void *)at);
        const __m256i to = _mm256_loadu_si256((const __m256i *)(const void *)(at + 1));
        const __m256i bytes = _mm256_sub_epi16(to, from), few = _mm256_min_epu16(bytes, _mm256_set1_epi16(16));
        uint32_t longer = _mm256_cmpgt_epu16_mask(bytes, _mm256_set1_epi16(15));
        const __m256i firsts = _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(from, 0), 0);
        const struct many many = {.last = _mm256_mask_mov_epi16(few, (__mmask16)longer, _mm256_set1_epi16(255)),
                                  .away = _mm256_sub_epi16(from, firsts)};
        const bool near = !_mm256_cmpgt_epu16_mask(_mm256_add_epi16(many.away, few), _mm256_set1_epi16(64)) &&
                          state->text_end - (text + at[MANY - 4]) >= 64;
        if (__builtin_expect(near, 1))
            store_keys(state, text, positions, i, &many, true);
        else
            store_keys(state, text, positions, i, &many, false);
#pragma GCC unroll 16
        for (uint32_t k = 0; k < MANY; k++)
            _mm_prefetch((const char *)bpe_batch_bucket(state, i + k), _MM_HINT_T0);
        for (; __builtin_expect(longer, 0); longer &= longer - 1) {
            const uint32_t k = (uint32_t)_tzcnt_u32(longer);
            _mm_prefetch((const char *)bpe_long_line(state, i + k, text + at[k], (uint32_t)(at[k + 1] - at[k])),
                         _MM_HINT_T0);
        }
    }
    return i;
}

/* See bpe_encode_x86.h. A line is read as long_ids() reads it, but where it does not hold the piece nothing is compared
 * (the mask is empty), so that the only branch is one that is almost always taken. */
static inline void copy_longs(struct bpe_state *state, const uint8_t *text, const uint16_t *positions, bool wide)
{
    const uint32_t most = bpe_inline_ids(wide);
    for (uint32_t n = 0; n < state->batch_long_count; n++) {
        const uint32_t i = state->batch_longs[n], count = (uint32_t)(positions[i + 1] - positions[i]);
        const uint64_t hash = state->keys[i].low;
        const struct bpe_long *line = bpe_long_at(state, bpe_long_tag(hash), 0);
        const uint32_t ids = line->ids, ids_bytes = ids * (wide ? 4u : 2u);
        const bool fits = (line->tag == bpe_long_tag(hash)) & (line->bytes == count) & (ids <= most) &
                          (ids_bytes + count <= sizeof line->rest);
        const __mmask64 used = _bzhi_u64(fits ? ~(uint64_t)0 : 0, count);
        const __m512i kept = _mm512_maskz_loadu_epi8(used, line->rest + (fits ? ids_bytes : 0));
        const bool same = !_mm512_mask_cmpneq_epu8_mask(used, _mm512_maskz_loadu_epi8(used, text + positions[i]), kept);
        const __m128i number = wide ? _mm_cvtsi32_si128((int)(ids << 28)) : _mm_set_epi32((int)(ids << 16), 0, 0, 0);
        const __m128i found = _mm_maskz_loadu_epi8((__mmask16)_bzhi_u32(0xFFFF, ids_bytes), line->rest);
        struct bpe_bucket *copy = &state->buckets[BPE_COPIES + i];
        copy->keys[0] = state->keys[i];
        _mm_store_si128((__m128i *)(void *)copy->values[0], _mm_or_si128(found, number));
        const bool holds = fits & same;
        state->batch_places[i] = holds ? (BPE_COPIES + i) << BPE_BUCKET_SHIFT : state->batch_places[i];
        state->counts.long_found += holds;
    }
}

#include "bpe_encode_x86.h"

uint32_t bpe_positions_vbmi(uint16_t *positions, const uint64_t *words, size_t count)
{
    static const uint8_t numbers[64] __attribute__((aligned(64))) = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    const __m512i all = _mm512_load_si512(numbers);
    uint32_t made = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = (uint32_t)_mm_popcnt_u64(words[i]);
        const __m512i found = _mm512_maskz_compress_epi8(words[i], all);
        const __m512i base = _mm512_set1_epi16((short)(64 * i));
        _mm512_storeu_si512(positions + made,
                            _mm512_add_epi16(_mm512_cvtepu8_epi16(_mm512_castsi512_si256(found)), base));
        if (__builtin_expect(bits > 32, 0))
            _mm512_storeu_si512(positions + made + 32,
                                _mm512_add_epi16(_mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(found, 1)), base));
        made += bits;
    }
    return made;
}

size_t bpe_pieces_vbmi(struct bpe_state *state, const uint8_t *text, const uint16_t *positions, uint32_t count,
                       void *tokens)
{
    return pieces(state, text, positions, count, tokens);
}

#endif
