/* SPDX-License-Identifier: MIT */
/*
 * bpe_cut_vbmi.c - the same as bpe_cut.c with AVX-512 (VBMI2, BMI2): the borders of a word at once, eight hashes at
 * once.
 *
 * In most texts few words have borders. So eight words are looked at together, and those that have some become a list.
 *
 * The two filters of bpe_may_join() are read in different ways. The one of single bytes, edge_joins, is 256 bytes, so
 * it stays in four registers, and permutations look all 64 bytes of a word up at once. The one of whole characters is
 * 128 KiB, so only the borders that are left are looked up in it: compress_epi8 lists where they are, and a permutation
 * puts the six bytes around each of eight of them into a lane, which is hashed.
 *
 * The hashes of 16 such words become one list, and a loop of plain loads reads their bits. A gather for each group of
 * eight was slower: how many eights a word has cannot be predicted, and a word waited for its own gather. The list's
 * loop has no such branch, and its loads do not wait for each other. Loading bytes in place of words had 0.99 to 1.00
 * times the rate.
 *
 * Example: the borders of a word are at bytes 6, 9, and 15, and the first filter keeps 6 and 15. They are listed as
 * 6, 15. Lane 0 gets bytes 3 to 8, and lane 1 bytes 12 to 17. If no token joins what lane 1 holds, the result is 10 in
 * the order of the list from the right, and pdep puts its second bit to byte 15.
 */
#include "bpe_cut.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

static const uint8_t byte_numbers[64] __attribute__((aligned(64))) = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

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

#define GROUP 16 /* words of the list whose borders are looked up together */
/* A word of valid text has at most 22 borders. That is three eights, which are hashed without a branch. Any other text
 * has at most 64. */
#define USUAL 24

/* Writes the hashes of the pairs of characters at eight borders. at: the number of a border in each byte of a lane. */
INLINE void eight_hashes(const struct window *window, __m512i at, uint32_t *hashes)
{
    const __m512i from = _mm512_add_epi8(at, _mm512_set1_epi64(0x0706050403020100));
    const __m512i six = _mm512_maskz_permutex2var_epi8(0x3F3F3F3F3F3F3F3F, window->low, from, window->high);
    const __m512i product = _mm512_mullo_epi64(six, _mm512_set1_epi64((long long)BPE_JOIN_FACTOR));
    _mm256_storeu_si256((__m256i *)(void *)hashes,
                        _mm512_cvtepi64_epi32(_mm512_srli_epi64(product, 64 - BPE_JOIN_BITS)));
}

/* Writes the hashes of the pairs of characters at the `count` borders `found` of a word; room for USUAL, or the
 * next multiple of eight. */
INLINE void hashes_of(const struct window *window, uint64_t found, uint32_t count, uint32_t *hashes)
{
    const __m512i list = _mm512_maskz_compress_epi8(found, _mm512_load_si512(byte_numbers));
    __m512i lanes = _mm512_set_epi64(0x0707070707070707, 0x0606060606060606, 0x0505050505050505, 0x0404040404040404,
                                     0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
    const __m512i eight = _mm512_set1_epi8(8);
#pragma GCC unroll 3
    for (uint32_t k = 0; k < USUAL; k += 8, lanes = _mm512_add_epi8(lanes, eight))
        eight_hashes(window, _mm512_permutexvar_epi8(lanes, list), hashes + k);
    for (uint32_t k = USUAL; __builtin_expect(k < count, 0); k += 8, lanes = _mm512_add_epi8(lanes, eight))
        eight_hashes(window, _mm512_permutexvar_epi8(lanes, list), hashes + k);
}

/* Writes the borders that may become cuts to cutting->cuts, as bpe_cut_borders() finds them, and the numbers of the
 * words that have some to `list`. Returns how many. */
INLINE uint32_t borders_find(const struct bpe_cutting *cutting, size_t words, size_t done,
                             uint8_t list[SCAN_WORDS + 64])
{
    const uint64_t *tall = SCAN_ROW(cutting->chunk->masks.tall), *starts = cutting->chunk->starts;
    uint64_t some[SCAN_WORDS / 64] = {0};
    for (size_t i = 0; i < words; i += 8) {
        const __m512i here = _mm512_loadu_si512(tall + i), before = _mm512_loadu_si512(tall + i - 1);
        const __m512i three = _mm512_shldi_epi64(here, before, 3);
        const __m512i found = _mm512_andnot_si512(_mm512_loadu_si512(starts + i), _mm512_and_si512(here, three));
        _mm512_storeu_si512(cutting->cuts + i, found);
        some[i / 64] |= (uint64_t)_mm512_test_epi64_mask(found, found) << (i % 64);
    }
    cutting->cuts[words - 1] = bpe_cut_borders(cutting->chunk, words - 1, done);
    uint32_t count = 0;
    for (size_t i = 0; i < words; i += 64) {
        const uint64_t here = words - i < 64 ? _bzhi_u64(some[i / 64], (uint32_t)(words - i)) : some[i / 64];
        const __m512i numbers = _mm512_add_epi8(_mm512_load_si512(byte_numbers), _mm512_set1_epi8((char)i));
        _mm512_storeu_si512(list + count, _mm512_maskz_compress_epi8(here, numbers));
        count += (uint32_t)_mm_popcnt_u64(here);
    }
    return count;
}

/* Turns the borders of the `few` words of the list, at most GROUP, into cuts. */
INLINE void cut_group(const struct bpe_cutting *cutting, const uint8_t *text, const uint8_t *list, uint32_t few,
                      const __m512i rows[4])
{
    uint32_t hashes[64 * GROUP + USUAL], count = 0;
    uint8_t joined[64 * GROUP + 64];
    const uint64_t *joins = cutting->model->joins;
    for (uint32_t k = 0; k < few; k++) {
        const size_t i = list[k];
        const uint64_t found = cutting->cuts[i] & ~joined_edges(rows, text + 64 * i, cutting->cuts[i]);
        const struct window window = window_at(cutting, text, i);
        const uint32_t borders = (uint32_t)_mm_popcnt_u64(found);
        hashes_of(&window, found, borders, hashes + count);
        count += borders;
        cutting->cuts[i] = found;
    }
#pragma GCC unroll 4
    for (uint32_t k = 0; k < count; k++)
        joined[k] = (uint8_t)(joins[hashes[k] / 64] >> (hashes[k] % 64));
    count = 0;
    for (uint32_t k = 0; k < few; k++) {
        const size_t i = list[k];
        const uint64_t found = cutting->cuts[i];
        const __m512i bits = _mm512_loadu_si512(joined + count);
        const uint64_t cuts = _pdep_u64(_mm512_testn_epi8_mask(bits, _mm512_set1_epi8(1)), found);
        cutting->chunk->starts[i] |= cuts;
        cutting->cuts[i] = cuts;
        count += (uint32_t)_mm_popcnt_u64(found);
    }
}

void bpe_cut_vbmi(const struct bpe_cutting *cutting, const uint8_t *text, size_t done)
{
    const struct bpe_model *model = cutting->model;
    const __m512i rows[4] = {_mm512_loadu_si512(model->edge_joins[0]), _mm512_loadu_si512(model->edge_joins[1]),
                             _mm512_loadu_si512(model->edge_joins[2]), _mm512_loadu_si512(model->edge_joins[3])};
    const size_t words = (done + 63) / 64;
    uint8_t list[SCAN_WORDS + 64];
    const uint32_t count = borders_find(cutting, words, done, list);
    for (uint32_t k = 0; k < count; k += GROUP)
        cut_group(cutting, text, list + k, count - k < GROUP ? count - k : GROUP, rows);
    cutting->cuts[words] = 0;
}

#endif
