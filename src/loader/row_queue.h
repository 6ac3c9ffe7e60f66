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
#include "schedule.h"
#include "tokmap/tokmap.h"

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
