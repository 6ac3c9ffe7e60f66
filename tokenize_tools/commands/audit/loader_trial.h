/* SPDX-License-Identifier: MIT */
/*
 * loader_trial.h - opens real loaders and compares what they deliver, token by token and place by place, with what the
 * arithmetic of the run predicts and the datasets contain; and samples of what is in their rows.
 */
#ifndef TOKMAP_COMMANDS_AUDIT_LOADER_TRIAL_H
#define TOKMAP_COMMANDS_AUDIT_LOADER_TRIAL_H

#include <stdbool.h>

#include "run/assignment.h"

#define TRIAL_FAULT 200 /* bytes of a fault's text, its zero included */

struct tokmap_extent;

struct loader_trial {
    const struct tokmap_run *run;
    struct assignment assignment;
    double balance; /* the loaders' option */
    struct tokmap_run_info info;
    uint8_t *expected, *narrow;    /* one row, and the same with the dataset's width */
    struct tokmap_extent *extents; /* of one row */
    uint64_t extents_most;
    uint64_t batches, delivered; /* that were compared; delivered: rows */
    uint64_t excluded;           /* tokens of these rows that are the pad id because the run excludes their documents */
    char fault[TRIAL_FAULT];     /* the first fault, or "" */
};

/* Returns whether a source is in object storage, so that a trial fetches tokens. */
bool run_is_remote(const struct tokmap_run *run);

/* Prepares a trial. Free it with loader_trial_end(), after a failure too.
 *   rule     of the ranks, and how rows are assigned to them
 *   balance  the q of rule->scale, or 0
 * Statuses: OK, ERROR_MEMORY, those of assignment_init(). */
enum tokmap_status loader_trial_begin(struct loader_trial *trial, const struct tokmap_run *run,
                                      const struct assignment_rule *rule, double balance, struct tokmap_error *error);
void loader_trial_end(struct loader_trial *trial);

/* Opens a loader for a rank at a step, which the run delivers, and compares the step's batches.
 * Statuses: OK, those of assignment_step(), tokmap_loader_open(), tokmap_loader_next(), and tokmap_dataset_copy(). */
enum tokmap_status loader_trial_step(struct loader_trial *trial, uint64_t rank, uint64_t step,
                                     struct tokmap_error *error);

/* ---- rows that are sampled ---- */

/*
 * What is in the rows of a few random steps, as a real loader delivers them: the work that each rank
 * gets, and the share of targets that count. These numbers are samples. Those of all rows would need a pass over all
 * data.
 *
 * The work of a rank in a step is the sum of the squared lengths of the documents in its rows: what attention costs
 * that stays inside documents. Ranks wait for each other, so the largest of a step counts.
 */

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
