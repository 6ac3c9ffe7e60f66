/* SPDX-License-Identifier: MIT */
/*
 * balance_samples.h - how much the calls and ranks of a step differ in cost, as they are and with the loaders' option
 * balance, in steps that are spread over the run. It reads indexes and plans only, no tokens.
 *
 * Where ranks exchange gradients or parameters in every call, all wait for the one whose call costs most; where they
 * do it once a step, for the one whose step costs most. So much slower than with equal ranks is the step.
 */
#ifndef TOKMAP_COMMANDS_AUDIT_BALANCE_SAMPLES_H
#define TOKMAP_COMMANDS_AUDIT_BALANCE_SAMPLES_H

#include "cli/report.h"
#include "tokmap/tokmap.h"

/* The largest cost divided by the mean: in the middle step, and in the worst. */
struct balance_ratio {
    double p50, most;
};

/* Of the calls of all ranks, which no assignment has below the bound; of ranks that wait in every call: the sum over
 * the calls; and of ranks that wait once a step. */
enum balance_kind { CALLS, BALANCED_CALLS, BOUND_CALLS, WAITS, BALANCED_WAITS, RANKS, BALANCED_RANKS, BALANCE_KINDS };

struct balance_samples {
    uint64_t steps, rows; /* that were computed */
    struct balance_ratio of[BALANCE_KINDS];
    uint64_t fault_step; /* its balanced rows are not its rows, each once; TOKMAP_FOREVER: no step's */
};

/* Compares two numbers of type double, for qsort(). */
int compare_ratios(const void *a, const void *b);

/* Computes the costs of the rows of some steps of [0, steps).
 *   ranks  at most the rows of any step
 *   rows   the most of a call; 0: a rank's whole slice
 *   scale  of row_cost.h, not 0
 * Statuses: OK, ERROR_INTERRUPTED (a signal arrived), those of assignment_init() and assignment_step(). */
enum tokmap_status balance_samples_take(struct balance_samples *samples, const struct tokmap_run *run, uint64_t steps,
                                        uint64_t ranks, uint64_t rows, uint64_t scale, struct tokmap_error *error);

/* Adds the member balance, which is null if no step was computed. q: the option. */
void balance_report_add(const struct balance_samples *of, double q, struct cli_report *report);

#endif
