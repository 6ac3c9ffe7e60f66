/* SPDX-License-Identifier: MIT */
/*
 * coverage.h - proves that the rows of a run show every window of an epoch exactly once, source by source.
 *
 * By counting: all rows of a step are located in the order of their draws, and the draws of each source must come one
 * after another, without a gap, across steps, phases, and threads. For each row, the inverse of the source's
 * permutation must lead from its window back to its draw. A function that has an inverse gives no window twice, so the
 * n draws of an epoch show n different windows, which are all it has. This needs no memory for windows, however many
 * there are.
 *
 * By sampling: a random row is located, and tokmap_run_find() must lead from its first token back to that row and to no
 * other row of the step. A row that two draws could reach, or that no draw reaches, fails this test.
 */
#ifndef TOKMAP_COMMANDS_AUDIT_COVERAGE_H
#define TOKMAP_COMMANDS_AUDIT_COVERAGE_H

#include "tokmap/tokmap.h"

#define COVERAGE_THREADS_MOST 64u
#define COVERAGE_FAULT 320 /* bytes of a fault's text, its zero included */

struct coverage {
    const struct tokmap_run *run;
    uint64_t seed;    /* of the random samples */
    int progress;     /* enum cli_progress_mode */
    uint32_t threads; /* that count, 1 to COVERAGE_THREADS_MOST */
};

/* Counts the rows of steps [0, steps) with coverage->threads threads; the run has these steps. Writes the first fault,
 * or "", to `fault`. Memory: some KiB, and about 1.2 KiB a thread for each source of a phase.
 * Statuses: OK, ERROR_MEMORY, ERROR_INTERRUPTED (a signal arrived). */
enum tokmap_status coverage_count(const struct coverage *coverage, uint64_t steps, char fault[COVERAGE_FAULT],
                                  struct tokmap_error *error);

/* Picks `tries` random rows of the steps [first, end), first < end, and checks those that the run delivers and that are
 * not padding; *samples receives their number. Stops at the first fault and writes it, or "", to `fault`, which must be
 * "" before.
 * Statuses: OK, ERROR_INTERRUPTED (a signal arrived), those of tokmap_run_locate() and tokmap_run_find(). */
enum tokmap_status coverage_sample(const struct coverage *coverage, uint64_t first, uint64_t end, uint64_t tries,
                                   uint64_t *samples, char fault[COVERAGE_FAULT], struct tokmap_error *error);
/* Returns a random number in [0, limit): SplitMix64, so a seed gives the same samples on every machine. */
uint64_t coverage_random(uint64_t *state, uint64_t limit);

#endif
