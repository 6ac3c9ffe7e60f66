/*
 * row_piece.h - what a row is made of: pieces of one dataset, one after another. The tokens after them are padding.
 */
#ifndef TOKMAP_DATASET_ROW_PIECE_H
#define TOKMAP_DATASET_ROW_PIECE_H

#include <stdint.h>

/* Consecutive tokens of a dataset, at least 1. After the dataset's last token a piece continues with its first. */
struct row_piece {
    uint64_t first_token, tokens;
};

#endif
