/* SPDX-License-Identifier: MIT */
/*
 * context.h - the slice of each row that a loader delivers where ranks share the columns of rows (context parallelism):
 * the check of the options, and the chunks of one row, each as the extents that are gathered for it.
 *
 * The thread that fills slots uses it.
 */
#ifndef TOKMAP_LOADER_CONTEXT_H
#define TOKMAP_LOADER_CONTEXT_H

#include <stdbool.h>

#include "batch/mark.h"
#include "run/columns.h"

struct context {
    struct columns columns;
    uint64_t ahead;       /* tokens that are read after each chunk */
    struct chunk *chunks; /* of the row at hand; room for chunks_most */
    uint64_t count, chunks_most;
    struct tokmap_extent *extents; /* of a chunk, or of all of a row */
    struct mark *marks;            /* of the whole row at hand */
    uint64_t *bits;                /* of the targets of a chunk, from that before its first column on */
    uint64_t slice_tokens;         /* of the rows of the batch so far, for cu_seqlens_slice */
    uint64_t trace;                /* the sum of their hashes */
};

/* Checks the options of a loader of a run. Statuses: OK, ERROR_RANGE, ERROR_ARGUMENT. */
enum tokmap_status context_check(const struct tokmap_loader_options *options, const struct tokmap_run *run,
                                 struct tokmap_error *error);

/* Allocates what the rows of a run need, if the options, which were checked, ask for slices.
 *   ahead  form_ahead()
 * Statuses: OK, ERROR_MEMORY. */
enum tokmap_status context_open(struct context *context, const struct tokmap_loader_options *options,
                                const struct tokmap_run *run, uint64_t ahead, struct tokmap_error *error);
void context_close(struct context *context);

/* Returns whether rows are cut. */
static inline bool context_cuts(const struct context *context)
{
    return context->columns.world > 1;
}

/* Replaces the extents of a whole row by those of all of its chunks, of which there is room for
 * context_extents_most(). */
uint64_t context_cut_row(const struct context *context, uint64_t seq_len, uint64_t dataset_tokens,
                         struct tokmap_extent *extents, uint64_t count);
uint64_t context_extents_most(const struct context *context, uint64_t extents_most);

#endif
