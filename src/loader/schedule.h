/* schedule.h - which rows of which step each call of next() on one rank delivers: DESIGN §5, ranks. Arithmetic only. */
#ifndef TOKMAP_LOADER_SCHEDULE_H
#define TOKMAP_LOADER_SCHEDULE_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

struct schedule {
    const struct tokmap_run *run;
    uint64_t first, rows; /* the rank's slice of every global batch */
    uint64_t calls;       /* a step; the same on every rank */
    uint64_t step, call;  /* the next one; step TOKMAP_FOREVER: the run is over */
};

struct call {
    uint64_t step;
    uint64_t first_row, count; /* in the global batch */
    bool last_in_step;
};

/* batch: rows of the global batch, >= world > rank. rows: a call, at most; 0: the whole slice. */
void schedule_init(struct schedule *schedule, const struct tokmap_run *run, uint64_t batch, uint64_t rank, uint64_t world,
                   uint64_t rows, uint64_t first_step);
/* False at the end of the run. */
bool schedule_call(const struct schedule *schedule, struct call *call);
void schedule_advance(struct schedule *schedule);
/* The largest count of any call. */
uint64_t schedule_rows(const struct schedule *schedule);

#endif
