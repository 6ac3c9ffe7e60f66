/* SPDX-License-Identifier: MIT */
/*
 * bpe_cut_avx2.c - bpe_cut.h with AVX2 and what every processor with AVX2 has: the first filter of a word at once, and
 * the second one of all borders of 16 words in one loop.
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
 * them reach the second filter, whose table of 128 KiB does not fit into the first-level cache. How many borders a word
 * has cannot be predicted, and a loop for each word waited for its loads after each wrong prediction. So the borders of
 * 16 words are listed without a branch, one loop looks all of them up, and each result goes to the byte that has the
 * number of its border. Example: the borders of a word are at bytes 6 and 15. The results are stored in bytes 6 and 15
 * of `joined`, whose bits 0 are read as a word of 64 bits. What the other bytes hold does not matter.
 */
#include "bpe_cut_words.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "bpe_positions.h"

#define GROUP 16 /* words whose borders are looked up together */
#define ROWS 2   /* of edge_joins: characters of three bytes */

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

/* Tables and state for cutting the words of a chunk. */
struct cutter {
    const struct bpe_cutting *cutting;
    const uint8_t *text;
    uint64_t rows[CUT_ROWS];
    struct edges edges;
};

/* Returns those of the borders `found` of word i that no edge joins. */
CUT_INLINE uint64_t edges_apart(const struct cutter *cutter, size_t i, uint64_t found)
{
    const uint8_t *word = cutter->text + 64 * i;
    if (!found || !i)
        return without_edges(cutter->rows, word, found);
    const uint64_t four = found & four_bytes(word);
    const uint64_t apart = half_apart(&cutter->edges, word) | (uint64_t)half_apart(&cutter->edges, word + 32) << 32;
    return (found & apart & ~four) | (__builtin_expect(four != 0, 0) ? without_edges(cutter->rows, word, four) : 0);
}

/* Makes cuts of the borders of at most GROUP words from word i on, after which five bytes may be read. joined: a byte
 * for each byte of these words, of which bit 0 says whether the second filter joins the border there. */
CUT_INLINE void cut_group(const struct cutter *cutter, size_t i, size_t words, uint8_t joined[64 * GROUP])
{
    const uint8_t *joins = (const uint8_t *)cutter->cutting->model->joins, *text = cutter->text + 64 * i;
    uint64_t *cuts = cutter->cutting->cuts + i;
    uint16_t places[64 * GROUP + BPE_POSITIONS_SLACK];
    for (size_t k = 0; k < words; k++)
        cuts[k] = edges_apart(cutter, i + k, cuts[k]);
    const uint32_t count = bpe_positions_avx2(places, cuts, words);
#pragma GCC unroll 4
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t hash = bpe_join_hash(load64(text + places[k] - 3));
        joined[places[k]] = joins[hash / 8] >> (hash % 8);
    }
    for (size_t k = 0; k < words; k++) {
        const __m256i one = _mm256_load_si256((const __m256i *)(const void *)(joined + 64 * k));
        const __m256i two = _mm256_load_si256((const __m256i *)(const void *)(joined + 64 * k + 32));
        cuts[k] &= ~((uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(one, 7)) |
                     (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(two, 7)) << 32);
    }
}

/* Returns whether one of the words has a bit. */
static bool any_of(const uint64_t *words, size_t count)
{
    uint64_t any = 0;
    for (size_t i = 0; i < count; i++)
        any |= words[i];
    return any != 0;
}

void bpe_cut_avx2(const struct bpe_cutting *cutting, const uint8_t *text, size_t done)
{
    uint8_t joined[64 * GROUP] __attribute__((aligned(32))) = {0};
    struct cutter cutter = {.cutting = cutting, .text = text};
    const size_t words = (done + 63) / 64;
    uint64_t *cuts = cutting->cuts;
    for (size_t i = 0; i < words; i++)
        cuts[i] = bpe_cut_borders(cutting->chunk, i, done);
    cuts[words] = 0;
    if (!any_of(cuts, words))
        return;
    edge_rows_make(cutter.rows, cutting->model->edge_joins);
    edges_make(&cutter.edges, cutting->model->edge_joins);
    size_t i = 0, few;
    for (; i < words; i += few) {
        few = words - i < GROUP ? words - i : GROUP;
        if (cutting->text_end - text < (ptrdiff_t)(64 * (i + few) + 5))
            break;
        if (any_of(cuts + i, few)) /* few words of most texts have borders */
            cut_group(&cutter, i, few, joined);
    }
    for (; i < words; i++) {
        const uint8_t *word = text + 64 * i;
        cuts[i] = stay_apart(cutting, word, without_edges(cutter.rows, word, cuts[i]), true);
    }
    for (i = 0; i < words; i++)
        cutting->chunk->starts[i] |= cuts[i];
}

#endif
