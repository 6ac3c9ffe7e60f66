/*
 * prefetch.h - looks ahead in the order: which rows come next, and what the storage and the processor's caches are told
 * of them before they are needed.
 */
#ifndef TOKMAP_LOADER_PREFETCH_H
#define TOKMAP_LOADER_PREFETCH_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

#include "batch/gather.h"
#include "run/locate.h"

struct prefetch {
    const struct tokmap_run *run;
    struct gather *const *gathers; /* of the run's sources */
    uint64_t sources;
    struct run_walk walk;
    uint64_t first, rows;          /* the rank's slice of a global batch */
    uint64_t step, row;            /* the next that enters the queue; step TOKMAP_FOREVER: none */
    struct tokmap_place *places;   /* the queue: row n of this rank is at n % capacity; capacity is a power of two */
    uint64_t capacity;
    uint64_t taken;                /* rows delivered: numbers below it have left the queue */
    uint64_t known;                /* numbers below it are in the queue */
    uint64_t asked;                /* numbers below it were asked of the storage, or passed while all was warm */
    uint64_t window;               /* rows to be asked ahead */
    bool warm;                     /* nothing is asked: all was in the page cache of late */
    uint32_t streak;               /* looks in a row that found a window there */
    uint32_t until_look;           /* rows to go to the next look */
};

/* rows_a_call: the largest batch. first_step: the first delivered one, or TOKMAP_FOREVER. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status prefetch_init(struct prefetch *prefetch, const struct tokmap_run *run, struct gather *const *gathers,
                                 uint64_t sources, uint64_t first, uint64_t rows, uint64_t rows_a_call,
                                 uint64_t first_step, uint32_t window, struct tokmap_error *error);
void prefetch_free(struct prefetch *prefetch);

/* Before row i of the batch at hand, which has `count` rows, is gathered: its place. Asks and prefetches ahead. */
const struct tokmap_place *prefetch_row(struct prefetch *prefetch, uint64_t i, uint64_t count);
/* Row i was not in the page cache. */
void prefetch_was_cold(struct prefetch *prefetch, uint64_t i);
/* Before and after row i of `count` rows that the caller named is gathered, which is at places[i]. Nothing is asked. */
void prefetch_named(struct prefetch *prefetch, const struct tokmap_place *places, uint64_t i, uint64_t count);
void prefetch_named_was(struct prefetch *prefetch, const struct tokmap_place *place, bool cold);
/* The batch is gathered; a batch that failed is not, and begins again at its first row. */
void prefetch_done(struct prefetch *prefetch, uint64_t count);

#endif
