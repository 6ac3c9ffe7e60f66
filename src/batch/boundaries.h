/* SPDX-License-Identifier: MIT */
/*
 * boundaries.h - where documents start inside a row: the marks that positions, document ids, masks, and cu_seqlens are
 * made of. A mark has one bit per token, so marks need the same memory for every row, however many documents it
 * contains.
 *
 * The functions are pure, except that they read the index of the dataset. Any thread.
 */
#ifndef TOKMAP_BATCH_BOUNDARIES_H
#define TOKMAP_BATCH_BOUNDARIES_H

#include <stdbool.h>

#include "dataset/row_extents.h"
#include "mark.h"
#include "tokmap/tokmap.h"

/* A row whose marks are wanted. */
struct boundaries_row {
    const struct tokmap_dataset *dataset; /* of the extents; NULL without extents */
    uint64_t dataset_tokens;
    const struct tokmap_extent *extents; /* `count` of them, as in gather_row() */
    uint64_t count;
    bool segments; /* each extent is one segment of a plan: no document starts inside it */
};

/* Fills the mark_words(marked) marks of the first `marked` tokens of a row. 1 <= marked <= 2^32; extents may go beyond.
 * A start bit is set at token 0, at the first token of each extent, at the first token of padding, at the seam, and
 * where a document starts, but not in an extent of padding, which belongs to the one before it. All other bits are 0,
 * and so are the sums.
 * Statuses: OK, ERROR_CORRUPT (the documents section contradicts itself), ERROR_IO. */
enum tokmap_status boundaries_mark_extents(const struct boundaries_row *row, uint64_t marked, struct mark *marks,
                                           struct tokmap_error *error);

/* Fills the sums of `words` marks whose start bits are filled, from those of the first one on. A GPU needs the sums;
 * the host needs only the first, because it expands a row from start to start. */
void boundaries_sum(struct mark *marks, uint64_t words);

/* Fills the mark_words(marked) marks of a chunk: tokens [first, first + marked) of a row whose marks and sums are
 * filled. Of their sums only the first are set. */
void boundaries_cut(const struct mark *row, uint64_t first, uint64_t marked, struct mark *marks);

/* The cu_seqlens of a batch, built row by row: boundaries_cu_begin(), boundaries_cu_row() for each row in order, and
 * boundaries_cu_end(). */
struct boundaries_cu {
    int32_t *ends;      /* the array that is filled; owned by the caller */
    uint64_t elements;  /* its capacity, at least 1 */
    uint64_t tokens;    /* in the rows so far */
    uint64_t documents; /* in the rows so far; ends[0] to ends[documents] are filled */
    uint64_t longest;   /* tokens of the longest of these documents */
};

void boundaries_cu_begin(struct boundaries_cu *cu, int32_t *ends, uint64_t elements);

/* Adds the documents of a row of seq_len tokens. The end of a row is the end of a document. Returns false if the array
 * has no room for them; *cu is then unusable. */
bool boundaries_cu_row(struct boundaries_cu *cu, const struct mark *marks, uint64_t seq_len);

/* Sets every element that is left to the number of tokens, which makes it a sequence without a token. */
void boundaries_cu_end(struct boundaries_cu *cu);

#endif
