/*
 * bpe_cut_avx2.c - bpe_cut.h with AVX2: the first filter of a word at once, and the second one border after another,
 * with shifts and lowest bits in one instruction (BMI1 and BMI2, which every processor with AVX2 has).
 *
 * The first filter, edge_joins, has for each row and each last byte of the left character a byte, and the lowest three
 * bits of the first byte of the right character choose a bit of it. A row has 64 entries, and a shuffle looks up one of
 * 16. A shuffle gives 0 for an index with bit 7 set, so subtracting 16 for each table of 16 entries lets an index take
 * part until its own table has come. The tables are differences (xor) of neighbors, so they add up to that table.
 * Example: index 0x2A takes entries 0x0A of table 0, table 0 ^ table 1, and table 1 ^ table 2, which are that of table
 * 2 in the end; minus 0x30, it is negative. Characters of four bytes, which are in a row of their own, are few: their
 * borders are looked up one by one.
 *
 * Few borders are joined by an edge: 3 to 7% in Chinese and Japanese text with the usual vocabularies. So nearly all of
 * them reach the second filter.
 */
#include "bpe_cut_words.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define ROWS 2 /* of edge_joins: characters of three bytes */

struct edges {
    __m256i steps[ROWS][4];
};

CUT_INLINE void edges_make(struct edges *edges, const uint8_t edge_joins[4][64])
{
    for (int row = 0; row < ROWS; row++) {
        __m256i before = _mm256_setzero_si256();
        for (int i = 0; i < 4; i++) {
            const __m256i table =
                _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(edge_joins[row] + 16 * i)));
            edges->steps[row][i] = _mm256_xor_si256(table, before);
            before = table;
        }
    }
}

/* Returns all bits of the bytes at `word` that no edge joins with the byte before. */
CUT_INLINE uint32_t half_apart(const struct edges *edges, const uint8_t *word)
{
    const __m256i powers = _mm256_set1_epi64x((long long)0x8040201008040201), sixteen = _mm256_set1_epi8(16);
    const __m256i first = _mm256_loadu_si256((const __m256i *)(const void *)word);
    __m256i last = _mm256_loadu_si256((const __m256i *)(const void *)(word - 1));
    last = _mm256_and_si256(last, _mm256_set1_epi8(63));
    __m256i low = _mm256_shuffle_epi8(edges->steps[0][0], last), high = _mm256_shuffle_epi8(edges->steps[1][0], last);
#pragma GCC unroll 3
    for (int i = 1; i < 4; i++) {
        last = _mm256_sub_epi8(last, sixteen);
        low = _mm256_xor_si256(low, _mm256_shuffle_epi8(edges->steps[0][i], last));
        high = _mm256_xor_si256(high, _mm256_shuffle_epi8(edges->steps[1][i], last));
    }
    const __m256i edge = _mm256_blendv_epi8(low, high, _mm256_slli_epi16(first, 4)); /* bit 3 chooses the row */
    const __m256i bit = _mm256_shuffle_epi8(powers, _mm256_and_si256(first, _mm256_set1_epi8(7)));
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_and_si256(edge, bit), _mm256_setzero_si256()));
}

/* Returns the bits of the bytes at `word` with which characters of four bytes begin. */
CUT_INLINE uint64_t four_bytes(const uint8_t *word)
{
    const __m256i least = _mm256_set1_epi8((char)0xF0);
    const __m256i one = _mm256_loadu_si256((const __m256i *)(const void *)word);
    const __m256i two = _mm256_loadu_si256((const __m256i *)(const void *)(word + 32));
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(one, least), one)) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(two, least), two)) << 32;
}

void bpe_cut_avx2(const struct bpe_cutting *cutting, const uint8_t *text, size_t done)
{
    const size_t words = (done + 63) / 64;
    uint64_t rows[CUT_ROWS];
    struct edges edges;
    bool made = false;
    for (size_t i = 0; i < words; i++) {
        const uint8_t *word = text + 64 * i;
        uint64_t cuts = bpe_cut_borders(cutting->chunk, i, done);
        if (cuts) {
            const bool near_end = cutting->text_end - word < 64 + 5;
            if (!made) {
                edge_rows_make(rows, cutting->model->edge_joins);
                edges_make(&edges, cutting->model->edge_joins);
                made = true;
            }
            if (i && !near_end) {
                const uint64_t four = cuts & four_bytes(word);
                uint64_t apart = half_apart(&edges, word) | (uint64_t)half_apart(&edges, word + 32) << 32;
                if (__builtin_expect(four != 0, 0))
                    apart = (apart & ~four) | without_edges(rows, word, four);
                cuts = stay_apart(cutting, word, cuts & apart, false);
            } else {
                cuts = stay_apart(cutting, word, without_edges(rows, word, cuts), true);
            }
        }
        cutting->chunk->starts[i] |= cuts;
        cutting->cuts[i] = cuts;
    }
    cutting->cuts[words] = 0;
}

#endif
