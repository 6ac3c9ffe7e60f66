/*
 * locate.h - the place of a row: which window it shows. A walk computes the places of many rows of the same step and
 * epoch faster than tokmap_run_locate(), because it keeps the permutations of that step and epoch.
 */
#ifndef TOKMAP_RUN_LOCATE_H
#define TOKMAP_RUN_LOCATE_H

#include <stdbool.h>

#include "dataset/row_piece.h"
#include "tokmap/tokmap.h"

/* One thread at a time may use a walk. It owns no memory. */
struct run_walk {
    const struct tokmap_run *run;
    bool step_known; /* the next three members hold values of `step` */
    uint64_t step;
    uint64_t step_base; /* first draw of the step */
    struct tokmap_order rows_order;
    bool epoch_known; /* the next four members hold values of `epoch` */
    uint64_t epoch;
    uint64_t epoch_first; /* first draw of the epoch */
    uint64_t shift;
    struct tokmap_order windows_order;
};

/* Begins a walk of a run, which must outlive it. */
void run_walk_init(struct run_walk *walk, const struct tokmap_run *run);

/* Fills *place with the place of a row. The step must be below the end of the run, and the row below the rows of the
 * step; the step may be skipped. Cannot fail. */
void run_walk_place(struct run_walk *walk, uint64_t step, uint64_t row, struct tokmap_place *place);

/* Does the same for any step and row. Statuses: OK, ERROR_RANGE (the run has no such step or row). */
enum tokmap_status run_walk_locate(struct run_walk *walk, uint64_t step, uint64_t row, struct tokmap_place *place,
                                   struct tokmap_error *error);

/* Reports what a row is made of, from a place of this run: pieces[0] to pieces[*count - 1], one after another. A window
 * is one piece, which may continue with the dataset's first token. A row of a plan is its segments, in their order. A
 * padding row is no piece. The tokens of the row after them, up to seq_len + lookahead of its step, are padding.
 * pieces has `capacity` elements, at least run_pieces_most(run). Cannot fail. */
void run_row_pieces(const struct tokmap_run *run, const struct tokmap_place *place, struct row_piece *pieces,
                    uint64_t capacity, uint64_t *count);

/* The most pieces of any row, at least 1. */
uint64_t run_pieces_most(const struct tokmap_run *run);

#endif
