/* SPDX-License-Identifier: MIT */
/*
 * columns.h - which columns of its rows a rank gets, of the ranks that share them (context parallelism). Pure
 * functions. A row has seq_len columns, numbered as its tokens; what a rank gets is cut into chunks of consecutive
 * columns, in rising order. For 2 ranks and a row of 8 columns, of which the last layout sees two documents:
 *
 *     contiguous         rank 0: 0 1 2 3          rank 1: 4 5 6 7          one chunk
 *     zigzag             rank 0: 0 1, 6 7         rank 1: 2 3, 4 5         chunks c and 2 C - 1 - c of 2 C
 *     zigzag_documents   rank 0: 0, 3, 4, 7       rank 1: 1, 2, 5, 6       the same of each segment of a plan's row
 */
#ifndef TOKMAP_RUN_COLUMNS_H
#define TOKMAP_RUN_COLUMNS_H

#include <stdbool.h>

#include "dataset/row_extents.h"
#include "tokmap/tokmap.h"

struct columns {
    uint64_t rank, world; /* rank < world; world 1: every column */
    enum tokmap_context_layout layout;
};

/* Columns [first, first + count) of a row. */
struct chunk {
    uint64_t first, count;
};

/* Returns by what the length of a row, or with zigzag_documents of each of its segments, must be divisible. */
uint64_t columns_divisor(const struct columns *columns);

/* Returns whether the chunks of every row are the same, whatever documents it shows. */
static inline bool columns_are_fixed(const struct columns *columns)
{
    return columns->world == 1 || columns->layout != TOKMAP_CONTEXT_ZIGZAG_DOCUMENTS;
}

/* Returns the most chunks of a row that has at most `extents_most` extents. */
uint64_t columns_chunks_most(const struct columns *columns, uint64_t extents_most);

/* Writes the chunks of a row of seq_len columns, a multiple of the divisor, and returns their number. The extents are
 * those of the row, of which zigzag_documents takes each, with the padding after it, as a segment. What is behind them
 * is a segment, too. */
uint64_t columns_of_row(const struct columns *columns, uint64_t seq_len, const struct tokmap_extent *extents,
                        uint64_t count, struct chunk *chunks);

/* Cuts tokens out of a row, chunk after chunk: a plain value that begins as {extents, count, tokens of the dataset}. */
struct columns_cut {
    const struct tokmap_extent *extents;
    uint64_t count, dataset_tokens;
    uint64_t extent, at; /* the extent that the last chunk began in, and its first token in the row */
};

/* Writes the extents of tokens [first, first + tokens) of the row and returns their number, at most 1 more than the row
 * has. What the row has no token for is padding, and is left out. `first` is not below that of the call before. */
uint64_t columns_cut_next(struct columns_cut *cut, uint64_t first, uint64_t tokens, struct tokmap_extent *into);

#endif
