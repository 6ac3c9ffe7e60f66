/*
 * schedule.h - which rows of which step each call of next() delivers on one rank. It is arithmetic only: no memory, no
 * files, no errors. One thread at a time may advance a schedule.
 *
 * Of a global batch of G rows, rank r of R owns rows floor(r G / R) to floor((r + 1) G / R) - 1, its slice of m rows.
 * It gets them in c calls, the same c on every rank: call k delivers rows floor(k m / c) to floor((k + 1) m / c) - 1 of
 * the slice.
 */
#ifndef TOKMAP_LOADER_SCHEDULE_H
#define TOKMAP_LOADER_SCHEDULE_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

/* A plain value; a copy of it is a schedule too. */
struct schedule {
    const struct tokmap_run *run;
    uint64_t first, rows; /* the rank's slice of every global batch */
    uint64_t calls;       /* per step; the same on every rank */
    uint64_t step, call;  /* of the next call; step TOKMAP_FOREVER: the run is over */
};

/* What one call delivers. */
struct call {
    uint64_t step;
    uint64_t first_row, count; /* in the global batch; count may be 0 */
    bool last_in_step;
};

/* Begins a schedule at the first delivered step >= first_step.
 *   batch  rows of the global batch; rank < world <= batch
 *   rows   the most rows that a call delivers; 0: the rank's whole slice */
void schedule_init(struct schedule *schedule, const struct tokmap_run *run, uint64_t batch, uint64_t rank,
                   uint64_t world, uint64_t rows, uint64_t first_step);

/* Reports the next call, without advancing. Returns false at the end of the run. */
bool schedule_call(const struct schedule *schedule, struct call *call);

/* Moves on to the call after the next. The run must not be over. */
void schedule_advance(struct schedule *schedule);

/* Returns the largest count of any call. */
uint64_t schedule_rows(const struct schedule *schedule);

#endif
