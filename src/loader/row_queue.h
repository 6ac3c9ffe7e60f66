/* SPDX-License-Identifier: MIT */
/*
 * row_queue.h - the places of the rows that one rank delivers next, in their order. It walks the run ahead of the
 * producer and passes each row on to the residency, which reads ahead, and to the gather, which prefetches cache lines.
 *
 * Rows of the rank are numbered from 0, where the loader begins. One thread at a time may use a queue.
 */
#ifndef TOKMAP_LOADER_ROW_QUEUE_H
#define TOKMAP_LOADER_ROW_QUEUE_H

#include <stdbool.h>

#include "batch/gather.h"
#include "batch/residency.h"
#include "context.h"
#include "run/assignment.h"
#include "run/locate.h"

/*
 * Which rows of which step each call of next() delivers on one rank. It is arithmetic only: no memory, no files, no
 * errors. One thread at a time may advance a schedule.
 *
 * Of a global batch of G rows, rank r of R owns rows floor(r G / R) to floor((r + 1) G / R) - 1, its slice of m rows.
 * It gets them in c calls, the same c on every rank: call k delivers rows floor(k m / c) to floor((k + 1) m / c) - 1 of
 * the slice. G, and with it the slice and c, may be another in each phase of the run. With an assignment
 * (run/assignment.h), these are positions, and the row at each is another one.
 */

/* A rank's part of one step. */
struct slice {
    uint64_t first, rows; /* of the global batch; no rows if the batch has fewer rows than there are ranks */
    uint64_t calls;       /* the same on every rank */
    uint64_t most;        /* rows of the largest call */
    uint64_t seq_len;
    uint64_t from, end; /* it is that of the steps [from, end) */
};

/* Fills *slice, unless it is right already, for a step below the run's end. rows: the most rows that a call delivers;
 * 0: the whole slice. */
void slice_of_step(struct slice *slice, const struct tokmap_run *run, uint64_t rank, uint64_t world, uint64_t rows,
                   uint64_t step);

/* A plain value; a copy of it is a schedule too. */
struct schedule {
    const struct tokmap_run *run;
    uint64_t rank, world, rows; /* as in slice_of_step() */
    struct slice slice;         /* of `step`; at the end of the run, of the last step */
    uint64_t step, call;        /* of the next call; step TOKMAP_FOREVER: the run is over */
};

/* The rows of one call. */
struct call {
    uint64_t step;
    uint64_t first, count; /* positions in the global batch (run/assignment.h); count may be 0 */
    uint64_t seq_len;
    bool last_in_step;
};

/* Begins a schedule at the first delivered step >= first_step. rank < world; world is at most the batch of every step
 * from there on. rows: as in slice_of_step(). */
void schedule_init(struct schedule *schedule, const struct tokmap_run *run, uint64_t rank, uint64_t world,
                   uint64_t rows, uint64_t first_step);

/* Reports the next call, without advancing. Returns false at the end of the run. */
bool schedule_call(const struct schedule *schedule, struct call *call);

/* Moves on to the call after the next. The run must not be over. */
void schedule_advance(struct schedule *schedule);

struct row_queue {
    const struct tokmap_run *run;
    struct residency *residency;
    struct gather *const *gathers; /* one for each source of the run */
    const struct context *context; /* the cut of rows */
    struct run_walk walk;
    uint64_t rank, world, rows;    /* as in slice_of_step() */
    uint64_t first_step;           /* of row 0; TOKMAP_FOREVER: the run has no rows */
    struct slice slice;            /* of `step` */
    uint64_t step, position;       /* of the row that enters the queue next; step TOKMAP_FOREVER: there is no more */
    struct assignment assignment;  /* of that step's rows to positions */
    enum tokmap_status fault;      /* of the assignment, which is not tried again until its rows are needed; or OK */
    struct tokmap_error error;     /* of that */
    struct tokmap_place *places;   /* row n is at n % capacity */
    uint64_t capacity;             /* a power of two */
    uint64_t taken;                /* rows below this number were delivered and may leave the queue */
    uint64_t known;                /* rows below this number are in the queue, or were */
    bool plans;                    /* some rows are those of a plan, which is read in parts: */
    uint64_t prefetched;           /* the segments of rows below this number were prefetched, */
    uint64_t complete;             /* and their first_token and tokens are set below this number */
    struct tokmap_extent *extents; /* those that are read of the row that was reported last */
    uint64_t extents_most;
};

/* Makes an empty queue.
 *   schedule  where it begins, and whose rows it has
 *   rule      of the assignment
 *   largest   rows of the largest batch that is taken at once, in any phase
 *   window    rows that the residency asks for ahead
 *   context   the cut of rows
 * The members residency and gathers must be set before row_queue_next() is called. Free it, after a failure too.
 * Statuses: OK, those of assignment_init(). */
enum tokmap_status row_queue_init(struct row_queue *queue, const struct schedule *schedule,
                                  const struct assignment_rule *rule, uint64_t largest, uint32_t window,
                                  const struct context *context, struct tokmap_error *error);
void row_queue_free(struct row_queue *queue);

/* Empties the queue, which then begins again with row 0. */
void row_queue_restart(struct row_queue *queue);

/* Returns the place of row `number` of the order, which is at most the window that the queue was made with ahead of
 * what is taken; NULL: the order ends before it. It is valid until the next call. */
const struct tokmap_place *row_queue_ahead(struct row_queue *queue, uint64_t number);

/* Reports row `number` of the order to the residency: an `order` of struct residency_options. user: the queue. A row of
 * padding has no extents. */
bool row_queue_window(void *user, uint64_t number, struct row_extents *row);

/* Finds what is read of the row of a place: its extents without padding, or those of its slice. They are in
 * queue->extents until the next call. A row whose extents cannot be found has none: filling it reports why. */
struct row_extents row_queue_extents(struct row_queue *queue, const struct tokmap_place *place);

/* Returns the place of row i of the batch at hand, which has `count` rows and is gathered in order of i, and announces
 * it to the residency. The run must have the row. The place stays valid until the batch is taken. Returns NULL if the
 * assignment of the row's step failed: see assignment_step().
 *   after  receives the tokens of the row after it, whose first lines are prefetched, or NULL: see gather_prefetch().
 *          May be NULL
 *   error  of that failure */
const struct tokmap_place *row_queue_next(struct row_queue *queue, uint64_t i, uint64_t count, const void **after,
                                          struct tokmap_error *error);

/* Notes that the batch of `count` rows is gathered. (A batch that failed is not taken, and begins again at its first
 * row.) */
void row_queue_take(struct row_queue *queue, uint64_t count);
/* Undoes the last row_queue_take(), of `count` rows. No row_queue_next() may have come between. */
void row_queue_untake(struct row_queue *queue, uint64_t count);

/* Does the same for the row that the caller named after places[i]. */
void row_queue_after_named(const struct row_queue *queue, const struct tokmap_place *places, uint64_t i, uint64_t count,
                           const void **after);

#endif
