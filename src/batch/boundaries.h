/*
 * boundaries.h - where documents start inside a window: the marks that positions, document ids, masks and cu_seqlens
 * are made of. A bit a token needs the same room whatever the documents are.
 */
#ifndef TOKMAP_BATCH_BOUNDARIES_H
#define TOKMAP_BATCH_BOUNDARIES_H

#include <stdbool.h>

#include "mark.h"
#include "tokmap/tokmap.h"

/* Fills the bits of the mark_words(count) marks of the window that begins at token `first` (taken modulo the dataset's
 * `tokens`, at least count): a start at each token j < count where a document starts, no others. The seam is such a
 * start; token 0 of the window is one always. The sums are 0. count <= 2^32.
 * Statuses: OK, ERROR_CORRUPT (the documents section contradicts itself), ERROR_IO. */
enum tokmap_status boundaries_mark(const struct tokmap_dataset *dataset, uint64_t tokens, uint64_t first,
                                   uint64_t count, struct mark *marks, struct tokmap_error *error);

/* The sums of marks whose bits are there: what a GPU needs, and a host, which goes from start to start, does not. */
void boundaries_sum(struct mark *marks, uint64_t words);

/* cu_seqlens of a batch in the making: row after row is added, then the rest is filled up. */
struct boundaries_cu {
    int32_t *ends;      /* ends[0] = 0 */
    uint64_t elements;  /* room in it, at least 1 */
    uint64_t tokens;    /* of the rows so far */
    uint64_t documents; /* in them: ends[1 .. documents] are filled */
    uint64_t longest;
};

void boundaries_cu_begin(struct boundaries_cu *cu, int32_t *ends, uint64_t elements);
/* Adds the documents of a row of seq_len tokens. False if they are more than there is room for. */
bool boundaries_cu_row(struct boundaries_cu *cu, const struct mark *marks, uint64_t seq_len);
/* Every element that is left becomes the number of tokens: sequences without a token. */
void boundaries_cu_end(struct boundaries_cu *cu);

#endif
