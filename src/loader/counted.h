/* SPDX-License-Identifier: MIT */
/*
 * counted.h - how many targets count (options.counts): of a call, and of its whole step, whose rows every rank knows.
 *
 * The loss of a step is the sum over its targets divided by their number, which is not the mean of the means of ranks
 * and calls. Each rank computes the number alone, at its first call of a step, from the indexes and masks: for each row
 * of the step it makes the bits of the targets that do not count, as for a loss mask, and counts the others. The thread
 * that fills slots uses it.
 */
#ifndef TOKMAP_LOADER_COUNTED_H
#define TOKMAP_LOADER_COUNTED_H

#include "loader_state.h"

/* Opens the counts of a loader whose sources are open, if its options ask for them. Statuses: OK, ERROR_MEMORY,
 * ERROR_ARGUMENT (no field says what is counted), ERROR_LIMIT (too many rows), ERROR_UNSUPPORTED (a source does not say
 * where its documents end; or its masks are in object storage and too large to fetch), those of reading a mask. */
enum tokmap_status counted_open(struct tokmap_loader *loader, struct tokmap_error *error);
void counted_close(struct counted *counted);

/* Sets what counts in a slot whose step, count, and places are known, if the options ask for it. Statuses: OK, those of
 * row_targets_bits() and row_targets_marks(). */
enum tokmap_status counted_fill(struct tokmap_loader *loader, struct slot *slot, struct tokmap_error *error);

#endif
