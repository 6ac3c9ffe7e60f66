/* SPDX-License-Identifier: MIT */
/* step_rows.h - which rows of a step are shown: all of them, those of a rank, those of one of its calls, or one; and
 * the tokens of rows. */
#ifndef TOKMAP_COMMANDS_SHOW_STEP_ROWS_H
#define TOKMAP_COMMANDS_SHOW_STEP_ROWS_H

#include <stdbool.h>

#include "run/assignment.h"

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

/* ---- tokens of rows ---- */

/* Pieces of a row, in its order: its extents, cut where the run begins and ceases to exclude their documents. Begins as
 * zero bytes, and is used for one row after another. */
struct row_pieces {
    struct tokmap_extent *extents;
    bool *excluded; /* of each: the row has the pad id in its place */
    uint64_t count, capacity;
};

/* Cuts the extents of the row of a place. pieces->count is 0 if the run excludes none of it. Statuses: OK,
 * ERROR_MEMORY. */
enum tokmap_status row_pieces_cut(struct row_pieces *pieces, const struct tokmap_run *run,
                                  const struct tokmap_place *place, const struct tokmap_extent *extents, uint64_t count,
                                  struct tokmap_error *error);
/* Adds an extent that is not excluded. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status row_pieces_add(struct row_pieces *pieces, const struct tokmap_extent *extent,
                                  struct tokmap_error *error);
void row_pieces_free(struct row_pieces *pieces);

/* Rows that show some of a range of tokens. Initialize with zeros and the run; free with sharing_free(). */
struct sharing {
    const struct tokmap_run *run;
    struct sharing_row {
        struct tokmap_place place;
        uint64_t shared; /* tokens of the range that the row shows; 0 if its plan contradicts itself */
    } * rows;
    uint64_t count, capacity;
    uint64_t first, tokens, left; /* of the search at hand: its range, and how many rows it may still find */
    struct tokmap_extent *extents;
};

/* Adds the rows of steps [from, end) that show some of the tokens [first, first + tokens) of a source, `most` of them,
 * and sorts all by step and row. Statuses: those of tokmap_run_find(), but not ERROR_INTERRUPTED; ERROR_MEMORY. */
enum tokmap_status sharing_find(struct sharing *sharing, uint64_t source, uint64_t first, uint64_t tokens,
                                uint64_t from, uint64_t end, uint64_t most, struct tokmap_error *error);
void sharing_free(struct sharing *sharing);

#endif
