/*
 * uncounted.h - which targets of a row its dataset's mask stream excludes: the bits that loss masks are made of, see
 * mark.h. Bit i of the stream says whether token i counts as a target, and target j of a row is its token j + 1.
 *
 * The function is pure, except that it reads the stream of the dataset. Any thread.
 */
#ifndef TOKMAP_BATCH_UNCOUNTED_H
#define TOKMAP_BATCH_UNCOUNTED_H

#include "dataset/row_piece.h"
#include "tokmap/tokmap.h"

/* Fills the mark_words(targets) words with the bits of targets 0 to targets - 1 of the row that has these pieces. A
 * target in padding gets 0, because the row's extent excludes it already; so do all targets if the dataset has no mask.
 *   dataset  of the pieces; NULL if there are none
 *   tokens   in the dataset
 * Statuses: OK, ERROR_IO, ERROR_TRUNCATED. */
enum tokmap_status uncounted_fill(const struct tokmap_dataset *dataset, uint64_t tokens, const struct row_piece *pieces,
                                  uint64_t count, uint64_t targets, uint64_t *words, struct tokmap_error *error);

#endif
