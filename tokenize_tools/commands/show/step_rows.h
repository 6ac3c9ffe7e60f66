/* SPDX-License-Identifier: MIT */
/* step_rows.h - which rows of a step are shown: all of them, those of a rank, those of one of its calls, or one. */
#ifndef TOKMAP_COMMANDS_SHOW_STEP_ROWS_H
#define TOKMAP_COMMANDS_SHOW_STEP_ROWS_H

#include <stdbool.h>

#include "run/assignment.h"
#include "tokmap/tokmap.h"

struct step_choice {
    uint64_t step, row, rank, ranks, call, rows; /* rows: the most of a call; 0: the rank's whole slice */
    double balance;                              /* q of the loaders' option; 0: off */
    uint64_t nodes;                              /* of the loaders' option; 0: off */
    bool row_given, rank_given, call_given;      /* call_given: rank_given, too */
};

/* Row i of those that are shown, for i < count, is assignment_row(&assignment, first + i). */
struct step_rows {
    struct assignment assignment;
    uint64_t first, count;
};

/* Finds the rows. Free *rows with step_rows_free(), after a failure too.
 *   name    of the run, for errors
 * Statuses: OK, ERROR_RANGE, those of row_cost_scale(), assignment_init(), and assignment_step(). */
enum tokmap_status step_rows_find(struct step_rows *rows, const struct tokmap_run *run, const char *name,
                                  const struct step_choice *choice, struct tokmap_error *error);

/* Sets first and count only, and leaves nothing to free: whether there are such rows. Statuses: OK, ERROR_RANGE. */
enum tokmap_status step_rows_slice(struct step_rows *rows, const struct tokmap_run *run, const char *name,
                                   const struct step_choice *choice, struct tokmap_error *error);
void step_rows_free(struct step_rows *rows);

#endif
