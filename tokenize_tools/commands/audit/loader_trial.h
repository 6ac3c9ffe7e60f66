/* SPDX-License-Identifier: MIT */
/*
 * loader_trial.h - opens real loaders and compares what they deliver, token by token and place by place, with what the
 * arithmetic of the run predicts and the datasets contain.
 */
#ifndef TOKMAP_COMMANDS_AUDIT_LOADER_TRIAL_H
#define TOKMAP_COMMANDS_AUDIT_LOADER_TRIAL_H

#include <stdbool.h>

#include "run/assignment.h"
#include "tokmap/tokmap.h"

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

#endif
