/* SPDX-License-Identifier: MIT */
/*
 * uncounted.h - which targets of a row its dataset's mask stream excludes: the bits that loss masks are made of, see
 * mark.h. Bit i of the stream says whether token i counts as a target, and target j of a row is its token j + 1.
 *
 * One thread at a time may use it.
 */
#ifndef TOKMAP_BATCH_UNCOUNTED_H
#define TOKMAP_BATCH_UNCOUNTED_H

#include "dataset/row_extents.h"
#include "residency.h"
#include "tokmap/tokmap.h"

struct uncounted;

/* Opens the masks of a source's dataset. The source must outlive *uncounted, which is NULL if the dataset has no mask.
 * Statuses: OK, ERROR_MEMORY. */
enum tokmap_status uncounted_open(struct uncounted **uncounted, struct residency_source *source,
                                  struct tokmap_error *error);
void uncounted_close(struct uncounted *uncounted); /* accepts NULL */

/* Fills the mark_words(targets) words with the bits of targets 0 to targets - 1 of the row that has these extents. A
 * target in padding after the last extent gets 0, because the bounds of the row exclude it already; so do all others if
 * uncounted is NULL, but 1 in extents of padding.
 * Statuses: OK, ERROR_IO, ERROR_TRUNCATED, ERROR_TIMEOUT. */
enum tokmap_status uncounted_fill(struct uncounted *uncounted, const struct tokmap_extent *extents, uint64_t count,
                                  uint64_t targets, uint64_t *words, struct tokmap_error *error);

/* Prefetches the bits of an extent that is filled soon into the processor's cache, if uncounted_fill() has been used
 * and would read them from a mapping. Never faults. Accepts NULL. */
void uncounted_prefetch(const struct uncounted *uncounted, const struct tokmap_extent *extent);

#endif
