/* SPDX-License-Identifier: MIT */
/*
 * sp_cut_avx2.c - cutting with AVX2: 32 borders of ASCII at once, by lookups in tables of 16 entries; blocks with other
 * characters go to sp_cut_scalar().
 */
#include "sp_cut.h"

#if defined(__x86_64__)

#include <immintrin.h>

struct tables {
    __m256i left[2][8], right[2][8]; /* rows of 16 entries, each repeated in both halves */
};

/* Looks up bytes below 128 in a table of 8 rows. */
static inline __m256i look_up(const __m256i rows[8], __m256i bytes)
{
    __m256i found = _mm256_setzero_si256();
    const __m256i low = _mm256_and_si256(bytes, _mm256_set1_epi8(15));
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(7));
    for (int row = 0; row < 8; row++) {
        const __m256i in_row = _mm256_cmpeq_epi8(high, _mm256_set1_epi8((char)row));
        found = _mm256_or_si256(found, _mm256_and_si256(in_row, _mm256_shuffle_epi8(rows[row], low)));
    }
    return found;
}

/* Returns the cuts among 32 bytes of ASCII after a byte of ASCII. */
static uint32_t cut_ascii(const struct tables *tables, const uint8_t *text)
{
    const __m256i now = _mm256_loadu_si256((const __m256i *)(const void *)text);
    const __m256i previous = _mm256_loadu_si256((const __m256i *)(const void *)(text - 1));
    __m256i joined = _mm256_setzero_si256();
    for (int set = 0; set < 2; set++)
        joined = _mm256_or_si256(
            joined, _mm256_and_si256(look_up(tables->left[set], previous), look_up(tables->right[set], now)));
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(joined, _mm256_setzero_si256()));
}

bool sp_cut_avx2(const struct sp_cut_table *table, const struct bpe_model *joins, const uint8_t *text, size_t count,
                 size_t readable, uint64_t *starts)
{
    struct tables tables;
    for (int set = 0; set < 2; set++)
        for (int row = 0; row < 8; row++) {
            tables.left[set][row] = _mm256_broadcastsi128_si256(
                _mm_loadu_si128((const __m128i *)(const void *)(table->left[set] + 16 * row)));
            tables.right[set][row] = _mm256_broadcastsi128_si256(
                _mm_loadu_si128((const __m128i *)(const void *)(table->right[set] + 16 * row)));
        }
    bool marked = false;
    for (size_t from = 0, to; from < count; from = to) {
        uint32_t wide = 1;
        to = from + 64 < count ? from + 64 : count;
        if (from && to == from + 64) {
            const __m256i first = _mm256_loadu_si256((const __m256i *)(const void *)(text + from));
            const __m256i second = _mm256_loadu_si256((const __m256i *)(const void *)(text + from + 32));
            wide = (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(first, second)) | (text[from - 1] >> 7);
        }
        if (!wide) {
            starts[from / 64] = cut_ascii(&tables, text + from) | (uint64_t)cut_ascii(&tables, text + from + 32) << 32;
            continue;
        }
        /* sp_cut_scalar() has to begin with the character before the block. */
        uint64_t words[2] = {0, 0};
        size_t back = 0;
        if (from)
            while (++back < 4 && from > back && (text[from - back] & 0xC0) == 0x80)
                ;
        marked |= sp_cut_scalar(table, joins, text + from - back, to - from + back, readable - from + back, words);
        if (back) {
            words[0] = words[0] >> back | words[1] << (64 - back);
            if (to - from < 64)
                words[0] &= ((uint64_t)1 << (to - from)) - 1;
        }
        starts[from / 64] = words[0];
    }
    starts[0] |= 1;
    return marked;
}

#endif
