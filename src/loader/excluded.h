/* SPDX-License-Identifier: MIT */
/*
 * excluded.h - takes the documents that a run excludes (run/exclusion.h) out of a row that was filled, in the slot: so
 * all that is made of the slot, on the host, on a device, and in a trace, is made without them.
 */
#ifndef TOKMAP_LOADER_EXCLUDED_H
#define TOKMAP_LOADER_EXCLUDED_H

#include "loader_state.h"

/* A row, or a chunk of one, in the slot. */
struct excluded_part {
    uint64_t first, columns; /* of the row */
    uint64_t tokens;         /* from column `first` on: those of the columns, and what follows them */
    uint64_t targets;        /* of the columns, and those ahead */
    uint8_t *row;            /* the tokens */
    uint64_t *bits;          /* of the targets that do not count; NULL: nothing asks for them */
    bool begins;             /* it is the first part of its row */
    bool first_label;        /* the bit after those of the targets is that of the label of the first column */
};

/* Replaces the excluded tokens of a part of row i by the pad id, sets the bits of the targets that do not count because
 * of them, and counts them in the slot. The row's place is slot->places[i], and its extents are in
 * loader->fill->extents. */
void excluded_take_out(const struct tokmap_loader *loader, struct slot *slot, uint64_t i, uint64_t extents,
                       const struct excluded_part *part);

#endif
