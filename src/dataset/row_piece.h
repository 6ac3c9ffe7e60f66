/* SPDX-License-Identifier: MIT */
/*
 * row_piece.h - what a row is made of: ranges of tokens of one dataset, one after another. The rest of the row, if
 * there is any, is padding.
 *
 *     a window             one piece of seq_len + lookahead tokens, which may pass the dataset's last token
 *     the last windows     of a run with `tail pad`: one piece that ends with the dataset, then padding
 *     a row of a plan      one piece for each segment, then padding
 *     a padding row        no piece
 */
#ifndef TOKMAP_DATASET_ROW_PIECE_H
#define TOKMAP_DATASET_ROW_PIECE_H

#include <stdint.h>

/* Tokens [first_token, first_token + tokens) of a dataset, modulo its tokens: past the last token it begins again.
 * first_token is below the dataset's tokens, and 1 <= tokens <= the dataset's tokens. */
struct row_piece {
    uint64_t first_token;
    uint64_t tokens;
};

/* The pieces of one row. */
struct row_pieces {
    uint64_t source;                /* number of the run's source; not used if there are no pieces */
    const struct row_piece *pieces; /* `count` of them */
    uint64_t count;
};

#endif
