/* SPDX-License-Identifier: MIT */
/* row_tokens.h - the tokens of rows: the extents of a row, cut where the run begins and ceases to exclude their
 * documents, and which rows show some of a range of tokens. */
#ifndef TOKMAP_COMMANDS_SHOW_ROW_TOKENS_H
#define TOKMAP_COMMANDS_SHOW_ROW_TOKENS_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

/* Pieces of a row, in its order. Begins as zero bytes, and is used for one row after another. */
struct row_pieces {
    struct tokmap_extent *extents;
    bool *excluded; /* of each: the row has the pad id in its place */
    uint64_t count, capacity;
};

/* Cuts the extents of the row of a place. pieces->count is 0 if the run excludes none of it. Statuses: OK,
 * ERROR_MEMORY. */
enum tokmap_status row_pieces_cut(struct row_pieces *pieces, const struct tokmap_run *run,
                                  const struct tokmap_place *place, const struct tokmap_extent *extents, uint64_t count,
                                  struct tokmap_error *error);
/* Adds an extent that is not excluded. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status row_pieces_add(struct row_pieces *pieces, const struct tokmap_extent *extent,
                                  struct tokmap_error *error);
void row_pieces_free(struct row_pieces *pieces);

/* Rows that were found. Initialize with zeros and the run; free with sharing_free(). */
struct sharing {
    const struct tokmap_run *run;
    struct sharing_row {
        struct tokmap_place place;
        uint64_t shared; /* tokens of the range that the row shows; 0 if its plan contradicts itself */
    } * rows;
    uint64_t count, capacity;
    uint64_t first, tokens, left; /* of the search at hand: its range, and how many rows it may still find */
    struct tokmap_extent *extents;
};

/* Adds the rows of steps [from, end) that show some of the tokens [first, first + tokens) of a source, `most` of them,
 * and sorts all by step and row. Statuses: those of tokmap_run_find(), but not ERROR_INTERRUPTED; ERROR_MEMORY. */
enum tokmap_status sharing_find(struct sharing *sharing, uint64_t source, uint64_t first, uint64_t tokens,
                                uint64_t from, uint64_t end, uint64_t most, struct tokmap_error *error);
void sharing_free(struct sharing *sharing);

#endif
