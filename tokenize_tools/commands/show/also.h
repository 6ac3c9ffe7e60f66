/* SPDX-License-Identifier: MIT */
/* also.h - the other rows of a run that show tokens of a row. */
#ifndef TOKMAP_COMMANDS_SHOW_ALSO_H
#define TOKMAP_COMMANDS_SHOW_ALSO_H

#include "tokmap/tokmap.h"

#define ALSO_MOST 8 /* rows that are listed */

struct also {
    struct {
        uint64_t step, row, shared; /* shared: tokens */
    } of[ALSO_MOST];                /* the first ones, by step and row */
    uint64_t count;                 /* of all rows, maybe more than there is room for */
};

/* Finds the rows of steps before `end` that show more of a row's tokens than its neighbors do, which share the
 * lookahead. Tokens that the run excludes from the row are not looked for. place: that of the row, with a source.
 * Statuses: OK, ERROR_MEMORY, those of tokmap_run_find(). */
enum tokmap_status also_find(struct also *also, const struct tokmap_run *run, const struct tokmap_place *place,
                             uint64_t end, struct tokmap_error *error);

#endif
