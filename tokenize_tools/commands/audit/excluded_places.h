/* SPDX-License-Identifier: MIT */
/*
 * excluded_places.h - where a run has the documents that it excludes: the rows that show them before the step of their
 * list, and those in which they would come from that step on, of which some are chosen to be read by real loaders.
 */
#ifndef TOKMAP_COMMANDS_AUDIT_EXCLUDED_PLACES_H
#define TOKMAP_COMMANDS_AUDIT_EXCLUDED_PLACES_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

#define EXCLUDED_STEPS 4
#define EXCLUDED_PLACES_MOST ((uint64_t)1 << 20) /* that are counted */

struct excluded_place {
    uint64_t step, row;
};

struct excluded_places {
    uint64_t documents, tokens; /* of the lists; tokens of several lists count once */
    uint64_t first_step;        /* from which anything is excluded */
    uint64_t before, after;     /* a place is a row and a stretch of excluded tokens */
    bool more;                  /* there are more than were counted */
    struct excluded_place chosen[EXCLUDED_STEPS];
    uint64_t chosen_count;
};

/* Counts the places in steps [0, end) of a run. Statuses: those of tokmap_run_find(). */
enum tokmap_status excluded_places_find(struct excluded_places *places, const struct tokmap_run *run, uint64_t end,
                                        struct tokmap_error *error);

#endif
