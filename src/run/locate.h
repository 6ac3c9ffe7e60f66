/* SPDX-License-Identifier: MIT */
/*
 * locate.h - the place of a row: which window it shows, and the extents of a dataset that it is made of. A walk
 * computes the places of many rows of the same step and epoch faster than tokmap_run_locate(), because it keeps the
 * permutations of that step and epoch.
 */
#ifndef TOKMAP_RUN_LOCATE_H
#define TOKMAP_RUN_LOCATE_H

#include <stdbool.h>

#include "dataset/row_extents.h"
#include "order/blocks.h"
#include "tokmap/tokmap.h"

/* The order of one epoch of one source, at hand. */
struct walk_epoch {
    bool known; /* the other members hold values */
    uint64_t source, span;
    uint64_t first; /* the source's draw in the span that is draw 0 of the epoch */
    uint64_t epoch, shift;
    union {
        struct tokmap_order shuffle;
        struct blocks_order blocks;
    } order;
};

struct leaf;
struct phase;
struct mixture_span;

/* One thread at a time may use a walk. */
struct run_walk {
    const struct tokmap_run *run;
    bool step_known; /* the members up to `rows_order` hold values of `step` */
    uint64_t step;
    uint64_t step_base;   /* first draw of the step */
    uint64_t end_step;    /* first step of the next phase */
    uint64_t rows, valid; /* of the step: all, and those that are not padding */
    const struct phase *phase;
    const struct mixture_span *stretch;
    struct tokmap_order rows_order;
    struct walk_epoch *epochs; /* one for each source; NULL: `one` serves all of them */
    struct walk_epoch one;
};

/* Begins a walk of a run, which must outlive it. It owns no memory and need not be freed until run_walk_keep() was
 * called. */
void run_walk_init(struct run_walk *walk, const struct tokmap_run *run);

/* Lets the walk keep the order of an epoch for each source of the run, not only for the last one. Without it, a walk of
 * a mixture is slow, because nearly each row has another source than the row before; with one source it does nothing.
 * Free the walk with run_walk_free(). Statuses: OK, ERROR_MEMORY (the walk can still be used, and must still be freed).
 */
enum tokmap_status run_walk_keep(struct run_walk *walk, struct tokmap_error *error);
void run_walk_free(struct run_walk *walk);

/* Fills *place with the place of a row. The step must be below the end of the run, and the row below the rows of the
 * step; the step may be skipped. Of a row of a plan that is corrupt, first_token and tokens are 0, and
 * run_row_extents() reports why. Cannot fail. */
void run_walk_place(struct run_walk *walk, uint64_t step, uint64_t row, struct tokmap_place *place);

/* Fills places[i] with the place of row rows[i] of a step, for i < count: the same as run_walk_place() for each of
 * them. The permutations take many rows at once, so that a row of many costs a third of one alone; with many sources,
 * less is gained. */
void run_walk_rows(struct run_walk *walk, uint64_t step, const uint64_t *rows, uint64_t count,
                   struct tokmap_place *places);

/* Returns which block of its epoch's order a place is in, from 0 on, and in *at the window's number in that block. The
 * run has `order blocks` or `order even`, the place is not padding, and it is of the step that the walk was used for
 * last. */
uint64_t run_walk_block(struct run_walk *walk, const struct tokmap_place *place, uint64_t *at);

/* Do the same in two halves, for a caller that knows rows ahead: first_token and tokens are set only by the second one,
 * if the row is one of a plan. Reading the plan waits twice for memory: for the row, and then for its segments. The
 * first half therefore prefetches the row, and run_plan_prefetch(), called some rows later, its segments. */
void run_walk_window(struct run_walk *walk, uint64_t step, uint64_t row, struct tokmap_place *place);
void run_plan_prefetch(const struct tokmap_run *run, const struct tokmap_place *place);
void run_place_tokens(const struct tokmap_run *run, struct tokmap_place *place);

/* Returns true if a source of the run draws rows of a plan. Otherwise run_walk_window() does everything. */
bool run_has_plans(const struct tokmap_run *run);

/* Does the same as run_walk_place() for any step and row, and fails if a plan cannot be read. Statuses: OK, ERROR_RANGE
 * (the run has no such step or row), ERROR_IO, ERROR_TRUNCATED. */
enum tokmap_status run_walk_locate(struct run_walk *walk, uint64_t step, uint64_t row, struct tokmap_place *place,
                                   struct tokmap_error *error);

/* Sets *epoch to the order of an epoch of a source, which is a leaf of a stretch of the run. Cannot fail. */
void run_epoch_init(struct walk_epoch *epoch, const struct tokmap_run *run, const struct mixture_span *stretch,
                    const struct leaf *leaf, uint64_t number);

/* Sets the source, epoch, first token, and tokens of a place whose other members are set. Statuses: OK (also if the
 * plan is corrupt there), ERROR_IO, ERROR_TRUNCATED (the plan cannot be read). */
enum tokmap_status run_fill_place(const struct tokmap_run *run, const struct walk_epoch *epoch,
                                  const struct mixture_span *stretch, struct tokmap_place *place,
                                  struct tokmap_error *error);

/* Reports what a row is made of, from a place of this run: extents[0] to extents[*count - 1], one after another. A
 * window is one extent, which may continue with the dataset's first token. A row of a plan is its segments, in their
 * order, each followed by the padding that its plan gives it. A padding row is no extent. The tokens of the row after
 * them, up to seq_len + lookahead of its step, are padding. extents has `capacity` elements, at least
 * run_extents_most(run). Statuses: OK, ERROR_CORRUPT (the plan contradicts itself there). */
enum tokmap_status run_row_extents(const struct tokmap_run *run, const struct tokmap_place *place,
                                   struct tokmap_extent *extents, uint64_t capacity, uint64_t *count,
                                   struct tokmap_error *error);

/* Writes the first extents of a row, at most `capacity` (>= 1) of them, and returns their number: for prefetching. It
 * reads no further, and passes over what is corrupt, and over plans that are read with pread. Cannot fail. */
uint64_t run_first_extents(const struct tokmap_run *run, const struct tokmap_place *place,
                           struct tokmap_extent *extents, uint64_t capacity);

/* Returns to a multiple of what padding makes each segment of a source's plan; 1: of nothing, or it has no plan. */
uint64_t run_source_pad(const struct tokmap_run *run, uint64_t source);

/* Returns the most segments of any row of a plan, at least 1. */
uint64_t run_segments_most(const struct tokmap_run *run);

/* Returns the most extents of any row, at least 1. */
uint64_t run_extents_most(const struct tokmap_run *run);

#endif
