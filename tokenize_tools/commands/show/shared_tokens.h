/* SPDX-License-Identifier: MIT */
/* shared_tokens.h - which rows show some of a range of tokens, and how many of them. */
#ifndef TOKMAP_COMMANDS_SHOW_SHARED_TOKENS_H
#define TOKMAP_COMMANDS_SHOW_SHARED_TOKENS_H

#include "tokmap/run.h"

/* Rows that were found. Initialize with zeros and the run; free with sharing_free(). */
struct sharing {
    const struct tokmap_run *run;
    struct sharing_row {
        struct tokmap_place place;
        uint64_t shared; /* tokens of the range that the row shows; 0 if its plan contradicts itself */
    } * rows;
    uint64_t count, capacity;
    uint64_t first, tokens, left; /* of the search at hand: its range, and how many rows it may still find */
    struct tokmap_extent *extents;
};

/* Adds the rows of steps [from, end) that show some of the tokens [first, first + tokens) of a source, `most` of them,
 * and sorts all by step and row. Statuses: those of tokmap_run_find(), but not ERROR_INTERRUPTED; ERROR_MEMORY. */
enum tokmap_status sharing_find(struct sharing *sharing, uint64_t source, uint64_t first, uint64_t tokens,
                                uint64_t from, uint64_t end, uint64_t most, struct tokmap_error *error);
void sharing_free(struct sharing *sharing);

#endif
