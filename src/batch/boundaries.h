/*
 * boundaries.h - where documents start inside a window: the marks that positions, document ids, masks, and cu_seqlens
 * are made of. A mark has one bit per token, so marks need the same memory for every window, however many documents it
 * contains.
 *
 * The functions are pure, except that they read the index of the dataset. Any thread.
 */
#ifndef TOKMAP_BATCH_BOUNDARIES_H
#define TOKMAP_BATCH_BOUNDARIES_H

#include <stdbool.h>

#include "mark.h"
#include "tokmap/tokmap.h"

/* Fills the mark_words(count) marks of the window that begins at token `first`, taken modulo `tokens`, the tokens of
 * the dataset. first < tokens, 1 <= count <= tokens, count <= 2^32. A start bit is set at each token of the window
 * where a document starts, at the seam, and at token 0 of the window. All other bits are 0, and so are the sums, which
 * boundaries_sum() fills.
 * Statuses: OK, ERROR_CORRUPT (the documents section contradicts itself), ERROR_IO. */
enum tokmap_status boundaries_mark(const struct tokmap_dataset *dataset, uint64_t tokens, uint64_t first,
                                   uint64_t count, struct mark *marks, struct tokmap_error *error);

/* Fills the sums of `words` marks whose start bits are filled. A GPU needs the sums; the host does not, because it
 * expands a row from start to start. */
void boundaries_sum(struct mark *marks, uint64_t words);

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
