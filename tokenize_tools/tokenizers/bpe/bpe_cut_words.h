/* SPDX-License-Identifier: MIT */
/*
 * bpe_cut_words.h - both filters of bpe_may_join() for one border after another; bpe_cut.c and bpe_cut_avx2.c compile
 * it for their processors.
 *
 * The two filters of bpe_may_join() are read one after the other. The one of single bytes, edge_joins, has 2048 bits
 * and keeps most borders from the other one, which has 128 KiB and needs a product. The first filter is turned around
 * once for each chunk that has borders: row r of edge_rows[] has a bit for each last byte of the left character, so a
 * border is one load and one shift.
 *
 * Example: the borders of a word are at bytes 6, 9, and 15. The byte at 6 is E4, so row 4 is read, and the byte at 5 is
 * B8, so its bit 0x38 says whether an edge joins there. If that is so at bytes 6 and 15, only the border at byte 9 is
 * looked up in the second filter.
 */
#ifndef TOKMAP_BPE_BPE_CUT_WORDS_H
#define TOKMAP_BPE_BPE_CUT_WORDS_H

#include <string.h>

#include "bpe_cut.h"

#define CUT_INLINE static inline __attribute__((always_inline))
#define CUT_ROWS 32

/* Bit `column` of rows[r] becomes bit r % 8 of edge_joins[r / 8][column]. */
CUT_INLINE void edge_rows_make(uint64_t rows[CUT_ROWS], const uint8_t edge_joins[4][64])
{
    for (uint32_t r = 0; r < CUT_ROWS; r++) {
        rows[r] = 0;
        for (uint32_t eight = 0; eight < 8; eight++) {
            const uint64_t bits = load64(&edge_joins[r / 8][8 * eight]) >> (r % 8) & 0x0101010101010101u;
            rows[r] |= (bits * 0x0102040810204080u >> 56) << 8 * eight;
        }
    }
}

/* Returns those of the borders `found` of the word at `word` that no edge joins. */
CUT_INLINE uint64_t without_edges(const uint64_t rows[CUT_ROWS], const uint8_t *word, uint64_t found)
{
    uint64_t left = 0;
    for (uint64_t rest = found; rest; rest &= rest - 1) {
        const ptrdiff_t at = __builtin_ctzll(rest);
        left |= (~rows[word[at] % CUT_ROWS] >> (word[at - 1] & 63) & 1) << at;
    }
    return left;
}

/* Returns those of the borders `found` of the word at `word` that model->joins does not join. near_end: fewer bytes may
 * be read after a border than are loaded at once. */
CUT_INLINE uint64_t stay_apart(const struct bpe_cutting *cutting, const uint8_t *word, uint64_t found, bool near_end)
{
    uint64_t cuts = 0;
    for (; found; found &= found - 1) {
        const ptrdiff_t at = __builtin_ctzll(found);
        const uint8_t *pair = word + at - 3;
        uint64_t six = 0;
        if (near_end && cutting->text_end - pair < 8)
            memcpy(&six, pair, (size_t)(cutting->text_end - pair));
        else
            six = load64(pair);
        const uint32_t hash = bpe_join_hash(six);
        cuts |= (~cutting->model->joins[hash / 64] >> (hash % 64) & 1) << at;
    }
    return cuts;
}

#endif
