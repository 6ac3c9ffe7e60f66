/* SPDX-License-Identifier: MIT */
/*
 * row_values.h - the values of a batch's targets (options.values). They are read as tokens are, from files that
 * dataset_values.h shows as datasets of bytes, each array by a residency and gathers of its own, because values are
 * larger than tokens and can be cold where tokens are not. The thread that fills slots uses it, but for the functions
 * on outputs.
 *
 * A value belongs to a token as a target: column j of a row has those of token j + 1. So what is read of a row is one
 * token behind what is read for its inputs.
 */
#ifndef TOKMAP_LOADER_ROW_VALUES_H
#define TOKMAP_LOADER_ROW_VALUES_H

#include "loader_state.h"

/* Opens the values of a loader whose sources and context are open: `names` as in options.values, or NULL. Closing is
 * allowed after a failure. Statuses: OK, ERROR_ARGUMENT (a name, or too many, or no array is asked for), those of
 * dataset_values_open(), ERROR_MISMATCH (sources have other types). */
enum tokmap_status row_values_open(struct tokmap_loader *loader, const char *names, struct tokmap_error *error);
/* Opens their residencies and gathers, of `window` rows ahead, and the plans of what is fetched. The queue is open.
 * Statuses: OK, ERROR_MEMORY, those of fetch_plan_new(). */
enum tokmap_status row_values_open_files(struct tokmap_loader *loader, uint32_t window,
                                         const struct assignment_rule *rule, struct tokmap_error *error);
void row_values_close(struct tokmap_loader *loader);

/* Writes the names that were given. */
#define ROW_VALUES_NAMES (VALUES_ARRAYS_MOST * (VALUES_NAME_MOST + 1))
const char *row_values_names(const struct row_values *values, char names[ROW_VALUES_NAMES]);

/* Returns the bytes of one row in the largest array. */
uint64_t row_values_bytes(const struct row_values *values, uint64_t seq_len);

/* Do for each array what residency.h says. */
void row_values_set_pool(struct row_values *values, struct read_pool *pool, bool asks, bool deadline);
void row_values_begin(struct row_values *values, uint64_t rows);
void row_values_restart(struct row_values *values);

/* Fills the values of row i of an arranged slot, whose place is slot->places[i]: in the slot, or in the arrays of
 * values.out. Those of padding, of targets that the run excludes, and of tokens that have none are zeros. named: the
 * caller has named the row, so it is not in the order. Statuses: those of gather_row() and run_row_extents(). */
enum tokmap_status row_values_fill(struct tokmap_loader *loader, struct slot *slot, uint64_t i, bool named,
                                   struct tokmap_error *error);

/* Lists what is copied from a slot to outputs, and returns how many there are. */
uint32_t row_values_copies(const struct tokmap_loader *loader, const struct slot *slot, const struct tokmap_out *out,
                           struct backend_copy copies[BACKEND_COPIES_MOST]);

/* Reports an output that is missing, as consumer.c does for fields. Statuses: OK, ERROR_ARGUMENT. */
enum tokmap_status row_values_check_out(const struct tokmap_loader *loader, const struct tokmap_out *out,
                                        struct tokmap_error *error);

#endif
