/* SPDX-License-Identifier: MIT */
/* bpe_cut.c - bpe_cut.h for any processor, one border after another. */
#include "bpe_cut_words.h"

void bpe_cut_scalar(const struct bpe_cutting *cutting, const uint8_t *text, size_t done)
{
    const size_t words = (done + 63) / 64;
    uint64_t rows[CUT_ROWS];
    bool made = false;
    for (size_t i = 0; i < words; i++) {
        const uint8_t *word = text + 64 * i;
        uint64_t cuts = bpe_cut_borders(cutting->chunk, i, done);
        if (cuts && !made) {
            edge_rows_make(rows, cutting->model->edge_joins);
            made = true;
        }
        if (cuts)
            cuts = without_edges(rows, word, cuts);
        if (cuts)
            cuts = cutting->text_end - word < 64 + 5 ? stay_apart(cutting, word, cuts, true)
                                                     : stay_apart(cutting, word, cuts, false);
        cutting->chunk->starts[i] |= cuts;
        cutting->cuts[i] = cuts;
    }
    cutting->cuts[words] = 0;
}
