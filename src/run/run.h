/* run.h - what the loader needs of a run beyond the public header. */
#ifndef TOKMAP_RUN_RUN_H
#define TOKMAP_RUN_RUN_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

/* Rows [*first, *first + *count) of a global batch of `rows` rows that belong to rank `rank` of `world`. */
void run_rank_rows(uint64_t rows, uint64_t rank, uint64_t world, uint64_t *first, uint64_t *count);

/* Walks a rank's rows without recomputing keys for each: keeps the permutations of the current step and epoch. */
struct run_walk {
    const struct tokmap_run *run;
    uint64_t step;           /* of `rows_order` */
    bool step_known;
    uint64_t step_base;      /* first draw of the step */
    struct tokmap_order rows_order;
    uint64_t epoch;          /* of `windows_order` */
    bool epoch_known;
    uint64_t epoch_first;    /* first draw of the epoch */
    uint64_t shift;          /* of the epoch */
    struct tokmap_order windows_order;
};
void run_walk_init(struct run_walk *walk, const struct tokmap_run *run);
/* As tokmap_run_locate(), faster for rows of the same step and epoch. row < rows of the step, step in the run. */
void run_walk_place(struct run_walk *walk, uint64_t step, uint64_t row, struct tokmap_place *place);
/* The same for any step and row, with the statuses of tokmap_run_locate(). */
enum tokmap_status run_walk_locate(struct run_walk *walk, uint64_t step, uint64_t row, struct tokmap_place *place,
                                   struct tokmap_error *error);

/* The first delivered step >= step, or TOKMAP_FOREVER if there is none. O(log skips). */
uint64_t run_next_step(const struct tokmap_run *run, uint64_t step);
/* Steps in [0, step) that are delivered. */
uint64_t run_delivered_before(const struct tokmap_run *run, uint64_t step);

/* Fills *info as tokmap_run_info() does, for callers of this build: it sets the size itself, so it cannot fail. */
void run_describe(const struct tokmap_run *run, struct tokmap_run_info *info);

/* The dataset of a source. */
const struct tokmap_dataset *run_dataset(const struct tokmap_run *run, uint64_t source);

#endif
