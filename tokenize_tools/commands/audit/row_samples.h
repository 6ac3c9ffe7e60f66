/* SPDX-License-Identifier: MIT */
/*
 * row_samples.h - what is in the rows of a few random steps, as a real loader delivers them: the work that each rank
 * gets, and the share of targets that count. These numbers are samples. Those of all rows would need a pass over all
 * data.
 *
 * The work of a rank in a step is the sum of the squared lengths of the documents in its rows: what attention costs
 * that stays inside documents. Ranks wait for each other, so the largest of a step counts.
 */
#ifndef TOKMAP_COMMANDS_AUDIT_ROW_SAMPLES_H
#define TOKMAP_COMMANDS_AUDIT_ROW_SAMPLES_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

struct row_samples {
    uint64_t steps, rows;                          /* that were read */
    bool all_ranks;                                /* of each of these steps; or of some ranks only */
    uint64_t work_p50, work_p99, work_most;        /* of the ranks and steps */
    double slowest_p50, slowest_p99, slowest_most; /* of the steps: the most work of a rank, divided by the mean */
    uint64_t documents_most;                       /* of any row that was read */
    uint64_t documents_bound;                      /* of any row of the run: what cu_seqlens has room for */
    bool has_targets;                              /* the run has a lookahead, so there are targets */
    uint64_t targets, counted;                     /* of these rows; how many of them count */
};

/* Reads the rows of up to `most` steps of [0, steps), fewer if they have many tokens.
 *   ranks  at most the rows of any step
 *   seed   of the choice of steps
 * Statuses: OK, ERROR_INTERRUPTED (a signal arrived), ERROR_MEMORY, those of tokmap_loader_open() and
 * tokmap_loader_read(). */
enum tokmap_status row_samples_take(struct row_samples *samples, const struct tokmap_run *run, uint64_t steps,
                                    uint64_t ranks, uint64_t most, uint64_t seed, struct tokmap_error *error);

#endif
