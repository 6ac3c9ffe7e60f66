/* SPDX-License-Identifier: MIT */
/*
 * row_targets.h - what makes targets of a whole row not count, but for what the run excludes: its bounds, the bits of
 * its dataset's mask, and the marks of its documents. The row's `extents` extents are in loader->fill->extents. For the
 * thread that fills slots.
 */
#ifndef TOKMAP_LOADER_ROW_TARGETS_H
#define TOKMAP_LOADER_ROW_TARGETS_H

#include "loader_state.h"

struct row_bounds row_targets_bounds(const struct tokmap_loader *loader, uint64_t seq_len,
                                     const struct tokmap_place *place, uint64_t extents);

/* Fills the bits of the first `targets` targets of a row that has these extents. Statuses: those of uncounted_fill().
 */
enum tokmap_status row_targets_bits(const struct tokmap_loader *loader, const struct tokmap_place *place,
                                    const struct tokmap_extent *extents, uint64_t count, uint64_t targets,
                                    uint64_t *bits, struct tokmap_error *error);

/* Fills the marks of the first `marked` tokens. Statuses: those of boundaries_mark_extents(). */
enum tokmap_status row_targets_marks(const struct tokmap_loader *loader, const struct tokmap_place *place,
                                     uint64_t extents, uint64_t marked, struct mark *marks, struct tokmap_error *error);

#endif
