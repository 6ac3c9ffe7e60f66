/* SPDX-License-Identifier: MIT */
/*
 * schedule.h - which rows of which step each call of next() delivers on one rank. It is arithmetic only: no memory, no
 * files, no errors. One thread at a time may advance a schedule.
 *
 * Of a global batch of G rows, rank r of R owns rows floor(r G / R) to floor((r + 1) G / R) - 1, its slice of m rows.
 * It gets them in c calls, the same c on every rank: call k delivers rows floor(k m / c) to floor((k + 1) m / c) - 1 of
 * the slice. G, and with it the slice and c, may be another in each phase of the run. With an assignment
 * (run/assignment.h), these are positions, and the row at each is another one.
 */
#ifndef TOKMAP_LOADER_SCHEDULE_H
#define TOKMAP_LOADER_SCHEDULE_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

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

#endif
