/*
 * bpe_encode_vbmi.c - steps 2 to 4 of bpe_encode.c with AVX-512 (VBMI2, BMI2, AES): positions from bitmaps, keys, and
 * lookups.
 */
#include "bpe_encode.h"

#if defined(__x86_64__)

#include <immintrin.h>

/* Writes the ids of a piece from the second cache, in the usual case: the piece is in the line that its hash
 * selects, and all of it fits the line. Returns the number of ids, or 0 if bpe_miss() has to find them. */
static inline __attribute__((always_inline)) uint32_t
long_ids(struct bpe_state *state, uint64_t hash, const uint8_t *bytes, uint32_t count, uint8_t *into, bool wide)
{
    const struct bpe_long *line = bpe_long_at(state, hash);
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
