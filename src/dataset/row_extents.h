/* SPDX-License-Identifier: MIT */
/*
 * row_extents.h - what a row is made of: ranges of tokens of one dataset, one after another. The rest of the row, if
 * there is any, is padding.
 *
 *     a window             one extent of seq_len + lookahead tokens, which may pass the dataset's last token
 *     the last windows     of a run with `tail pad`: one extent that ends with the dataset, then padding
 *     a row of a plan      one extent for each segment, then padding; in a plan that pads documents, each segment may
 *                          be followed by an extent of padding
 *     a padding row        no extent
 */
#ifndef TOKMAP_DATASET_ROW_EXTENTS_H
#define TOKMAP_DATASET_ROW_EXTENTS_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

/* Returns whether an extent is padding between segments: it has no token of the dataset. */
static inline bool extent_is_padding(const struct tokmap_extent *extent)
{
    return extent->first_token == TOKMAP_NO_OFFSET;
}

/* The extents of one row. Of each, first_token is below the dataset's tokens, 1 <= tokens <= the dataset's tokens, and
 * after the last token the dataset begins again. */
struct row_extents {
    uint64_t source;                     /* number of the run's source; not used if there are no extents */
    const struct tokmap_extent *extents; /* `count` of them */
    uint64_t count;
};

#endif
