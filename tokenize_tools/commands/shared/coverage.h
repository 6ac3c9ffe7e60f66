/*
 * coverage.h - proves that the rows of a run show every window of an epoch once.
 *
 * By counting, each row is located and its window marked in a bitmap of its epoch: a window marked twice is a fault,
 * and so is an epoch whose draws are over with a window unmarked. A step touches few epochs, so few bitmaps are alive
 * at once. By sampling, a random row is located, and the way back from its first token must lead to it and to no other
 * row of the step: a row that two draws could reach, or none, has no such way back.
 */
#ifndef TOKMAP_COMMANDS_SHARED_COVERAGE_H
#define TOKMAP_COMMANDS_SHARED_COVERAGE_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

#define COVERAGE_FAULT 200 /* bytes of a fault's text */

struct coverage {
    const struct tokmap_run *run;
    uint64_t batch;   /* rows of every step */
    uint64_t windows; /* of an epoch */
    uint64_t seed;    /* of the samples */
    bool quiet;       /* no progress */
};

/* Memory that counting takes. */
uint64_t coverage_bytes(const struct coverage *coverage);

/* Counts the steps [0, steps) on all processors. fault: "" if there is none.
 * Statuses: OK, ERROR_MEMORY, ERROR_INTERRUPTED (a signal came), those of tokmap_run_locate. */
enum tokmap_status coverage_count(const struct coverage *coverage, uint64_t steps, char fault[COVERAGE_FAULT],
                                  struct tokmap_error *error);

/* Tries `tries` random rows of the delivered steps [first, end); *samples says how many were delivered.
 * Statuses: OK, ERROR_INTERRUPTED, those of tokmap_run_locate and tokmap_run_find. */
enum tokmap_status coverage_sample(const struct coverage *coverage, uint64_t first, uint64_t end, uint64_t tries,
                                   uint64_t *samples, char fault[COVERAGE_FAULT], struct tokmap_error *error);

#endif
