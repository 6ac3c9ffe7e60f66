/* SPDX-License-Identifier: MIT */
/*
 * row_extents.h - what a row is made of: ranges of tokens of one dataset, one after another. The rest of the row, if
 * there is any, is padding.
 *
 *     a window             one extent of seq_len + lookahead tokens, which may pass the dataset's last token
 *     the last windows     of a run with `tail pad`: one extent that ends with the dataset, then padding
 *     a row of a plan      one extent for each segment, then padding
 *     a padding row        no extent
 */
#ifndef TOKMAP_DATASET_ROW_EXTENTS_H
#define TOKMAP_DATASET_ROW_EXTENTS_H

#include "tokmap/tokmap.h"

/* The extents of one row. Of each, first_token is below the dataset's tokens, 1 <= tokens <= the dataset's tokens, and
 * after the last token the dataset begins again. */
struct row_extents {
    uint64_t source;                     /* number of the run's source; not used if there are no extents */
    const struct tokmap_extent *extents; /* `count` of them */
    uint64_t count;
};

#endif
