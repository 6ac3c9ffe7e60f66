/*
 * coverage.h - proves that the rows of a run show every window of an epoch exactly once.
 *
 * By counting: each row is located and its window is marked in the epoch's bitmap. A window that is marked twice is a
 * fault, and so is an unmarked window in an epoch whose draws are over. A step touches few epochs, so few bitmaps exist
 * at a time.
 *
 * By sampling: a random row is located, and tokmap_run_find() must lead from its first token back to that row and to no
 * other row of the step. A row that two draws could reach, or that no draw reaches, fails this test.
 */
#ifndef TOKMAP_COMMANDS_SHARED_COVERAGE_H
#define TOKMAP_COMMANDS_SHARED_COVERAGE_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

#define COVERAGE_THREADS_MOST 64u
#define COVERAGE_FAULT 200 /* bytes of a fault's text, its zero included */

struct coverage {
    const struct tokmap_run *run;
    uint64_t batch;   /* rows of every step, at least 1 */
    uint64_t windows; /* of an epoch, at least 1 */
    uint64_t seed;    /* of the random samples */
    int progress;     /* enum cli_progress_mode */
    uint32_t threads; /* that count, 1 to COVERAGE_THREADS_MOST */
};

/* Returns the bytes of memory that coverage_count() needs. */
uint64_t coverage_bytes(const struct coverage *coverage);

/* Counts the rows of steps [0, steps) with coverage->threads threads; steps * batch must be below 2^63. Writes the
 * first fault, or "", to `fault`. Statuses: OK, ERROR_MEMORY, ERROR_INTERRUPTED (a signal arrived), those of
 * tokmap_run_locate(). */
enum tokmap_status coverage_count(const struct coverage *coverage, uint64_t steps, char fault[COVERAGE_FAULT],
                                  struct tokmap_error *error);

/* Picks `tries` random rows of the steps [first, end), first < end, and checks those that the run delivers; *samples
 * receives their number. Stops at the first fault and writes it, or "", to `fault`, which must be "" before.
 * Statuses: OK, ERROR_INTERRUPTED (a signal arrived), those of tokmap_run_locate() and tokmap_run_find(). */
enum tokmap_status coverage_sample(const struct coverage *coverage, uint64_t first, uint64_t end, uint64_t tries,
                                   uint64_t *samples, char fault[COVERAGE_FAULT], struct tokmap_error *error);

#endif
