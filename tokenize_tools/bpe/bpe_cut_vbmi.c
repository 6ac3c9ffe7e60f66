/*
 * bpe_cut_vbmi.c - the same as bpe_cut.c with AVX-512 (VBMI2, BMI2): the borders of a word at once, eight hashes at
 * once.
 *
 * The two filters of bpe_may_join() are read in different ways. The one of single bytes, edge_joins, is 256 bytes, so
 * it stays in four registers, and permutations look all 64 bytes of a word up at once. The one of whole characters is
 * 128 KiB, so only the borders that are left are looked up in it: compress_epi8 lists where they are, a permutation
 * puts the six bytes around each of eight of them into a lane, and a gather reads the words that their hashes select.
 *
 * Example: the borders of a word are at bytes 6, 9, and 15, and the first filter keeps 6 and 15. They are listed as
 * 6, 15. Lane 0 gets bytes 3 to 8, and lane 1 bytes 12 to 17. If no token joins what lane 1 holds, the result is 10 in
 * the order of the list from the right, and pdep puts its second bit to byte 15.
 */
#include "bpe_cut.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

/* Bytes 64 * i - 3 to 64 * i + 76 of the text, those that are before the text or after its end as zeros. */
struct window {
    __m512i low, high;
};

INLINE struct window window_at(const struct bpe_cutting *cutting, const uint8_t *text, size_t i)
{
    const uint8_t *at = (const uint8_t *)((uintptr_t)text + 64 * i - 3);
    const ptrdiff_t readable = cutting->text_end - (text + 64 * i) + 3;
    if (__builtin_expect(i && readable >= 80, 1))
        return (struct window){_mm512_loadu_si512(at),
                               _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)(at + 64)))};
    const uint64_t few = readable < 64 ? _bzhi_u64(~(uint64_t)0, (uint32_t)readable) : ~(uint64_t)0;
    const uint32_t more = readable <= 64 ? 0 : readable < 80 ? _bzhi_u32(0xFFFF, (uint32_t)readable - 64) : 0xFFFF;
    return (struct window){_mm512_maskz_loadu_epi8(i ? few : few & ~(uint64_t)7, at),
                           _mm512_castsi128_si512(_mm_maskz_loadu_epi8((__mmask16)more, at + 64))};
}

/* Returns those of the borders `found` of the word at `word` that edge_joins joins. */
INLINE uint64_t joined_edges(const __m512i rows[4], const uint8_t *word, uint64_t found)
{
    const __m512i bits = _mm512_set1_epi64((long long)0x8040201008040201);
    const __m512i first = _mm512_maskz_loadu_epi8(found, word);
    const __m512i last = _mm512_maskz_loadu_epi8(found, (const uint8_t *)((uintptr_t)word - 1));
    /* Bit 3 of `first` chooses between two rows, as bit 6 of the index, and bit 4 between two pairs of rows. */
    const __m512i row = _mm512_slli_epi16(_mm512_and_si512(first, _mm512_set1_epi8(8)), 3);
    const __m512i index = _mm512_or_si512(row, _mm512_and_si512(last, _mm512_set1_epi8(63)));
    const __m512i one = _mm512_permutex2var_epi8(rows[0], index, rows[1]);
    const __m512i other = _mm512_permutex2var_epi8(rows[2], index, rows[3]);
    const __m512i edges = _mm512_mask_mov_epi8(one, _mm512_test_epi8_mask(first, _mm512_set1_epi8(16)), other);
    const __m512i bit = _mm512_shuffle_epi8(bits, _mm512_and_si512(first, _mm512_set1_epi8(7)));
    return _mm512_mask_test_epi8_mask(found, edges, bit);
}

/* Returns those of the borders `found` of a word that model->joins does not join. */
INLINE uint64_t apart(const struct bpe_model *model, const struct window *window, uint64_t found)
{
    static const uint8_t numbers[64] __attribute__((aligned(64))) = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    const __m512i list = _mm512_maskz_compress_epi8(found, _mm512_load_si512(numbers));
    const __m512i within = _mm512_set1_epi64(0x0706050403020100), one = _mm512_set1_epi64(1);
    __m512i lanes = _mm512_set_epi64(0x0707070707070707, 0x0606060606060606, 0x0505050505050505, 0x0404040404040404,
                                     0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
    const uint32_t count = (uint32_t)_mm_popcnt_u64(found);
    uint64_t result = 0;
    for (uint32_t k = 0; k < count; k += 8) {
        const __m512i from = _mm512_add_epi8(_mm512_permutexvar_epi8(lanes, list), within);
        const __m512i six = _mm512_maskz_permutex2var_epi8(0x3F3F3F3F3F3F3F3F, window->low, from, window->high);
        const __m512i product = _mm512_mullo_epi64(six, _mm512_set1_epi64((long long)BPE_JOIN_FACTOR));
        const __m512i hash = _mm512_srli_epi64(product, 64 - BPE_JOIN_BITS);
        const __m512i words = _mm512_i64gather_epi64(_mm512_srli_epi64(hash, 6), model->joins, 8);
        const __m512i bit = _mm512_sllv_epi64(one, _mm512_and_si512(hash, _mm512_set1_epi64(63)));
        result |= (uint64_t)_mm512_testn_epi64_mask(words, bit) << k;
        lanes = _mm512_add_epi8(lanes, _mm512_set1_epi8(8));
    }
    return _pdep_u64(result, found);
}

void bpe_cut_vbmi(const struct bpe_cutting *cutting, const uint8_t *text, size_t done)
{
    const struct bpe_model *model = cutting->model;
    const __m512i rows[4] = {_mm512_loadu_si512(model->edge_joins[0]), _mm512_loadu_si512(model->edge_joins[1]),
                             _mm512_loadu_si512(model->edge_joins[2]), _mm512_loadu_si512(model->edge_joins[3])};
    const size_t words = (done + 63) / 64;
    for (size_t i = 0; i < words; i++) {
        uint64_t found = bpe_cut_borders(cutting->chunk, i, done);
        if (found)
            found &= ~joined_edges(rows, text + 64 * i, found);
        if (found) {
            const struct window window = window_at(cutting, text, i);
            found = apart(model, &window, found);
        }
        cutting->chunk->starts[i] |= found;
        cutting->cuts[i] = found;
    }
    cutting->cuts[words] = 0;
}

#endif
