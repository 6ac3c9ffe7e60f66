/* SPDX-License-Identifier: MIT */
/* row_pieces.h - the extents of a row, cut where the run begins and ceases to exclude their documents. */
#ifndef TOKMAP_COMMANDS_SHOW_ROW_PIECES_H
#define TOKMAP_COMMANDS_SHOW_ROW_PIECES_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

/* Pieces of a row, in its order. Begins as zero bytes, and is used for one row after another. */
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

#endif
