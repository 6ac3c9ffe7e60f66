/* SPDX-License-Identifier: MIT */
/*
 * excluded.h - takes the documents that a run excludes (run/exclusion.h) out of a row that was filled, in the slot: so
 * all that is made of the slot, on the host, on a device, and in a trace, is made without them.
 */
#ifndef TOKMAP_LOADER_EXCLUDED_H
#define TOKMAP_LOADER_EXCLUDED_H

#include "loader_state.h"

/* Replaces the excluded tokens of row i by the pad id, sets the bits of the targets that do not count because of them,
 * and counts them in the slot. The row's place is slot->places[i], and its extents are in loader->fill.extents. */
void excluded_take_out(const struct tokmap_loader *loader, struct slot *slot, uint64_t i, uint64_t extents);

#endif
