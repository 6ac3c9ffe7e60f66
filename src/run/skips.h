/* SPDX-License-Identifier: MIT */
/*
 * skips.h - the steps of a run that are never delivered, as ranges that are merged and sorted.
 */
#ifndef TOKMAP_RUN_SKIPS_H
#define TOKMAP_RUN_SKIPS_H

#include <stddef.h>

#include "common/hash.h"
#include "run_text.h"

/* Steps first <= step < end are skipped. */
struct skip_range {
    uint64_t first, end;
    uint64_t before;      /* number of skipped steps below `first` */
    struct hash128 chain; /* fingerprint of the ranges before this one; past_init() fills it */
};

/* Ranges in increasing order. They neither overlap nor touch, so the step after a range is always delivered. */
struct skips {
    struct skip_range *ranges;
    size_t count;
};

/* Sorts and merges the `count` skip lines of a run into *skips. count may be 0; then nothing is allocated. Free *skips
 * with skips_free(), after a failure too. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status skips_merge(struct skips *skips, const struct skip_line *lines, size_t count,
                               struct tokmap_error *error);
void skips_free(struct skips *skips);

/* Returns the index of the first range that ends after `step`, or skips->count if every range ends at or before it. The
 * range holds the step only if it also begins at or before it. O(log ranges). */
size_t skips_index(const struct skips *skips, uint64_t step);

/* Returns the number of skipped steps below `step`. O(log ranges). */
uint64_t skips_before(const struct skips *skips, uint64_t step);

/* Returns the first step >= `step` that is not skipped. O(log ranges). */
uint64_t skips_next_delivered(const struct skips *skips, uint64_t step);

#endif
