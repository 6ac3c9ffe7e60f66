/* SPDX-License-Identifier: MIT */
/*
 * past.h - the past of a run: everything that decided which rows were delivered before a step. A cursor stores its
 * fingerprint, and a run resumes on a cursor only if its own past before that step has the same fingerprint.
 */
#ifndef TOKMAP_RUN_PAST_H
#define TOKMAP_RUN_PAST_H

#include <stdbool.h>

#include "common/hash.h"
#include "exclusion.h"
#include "phases.h"
#include "run_sources.h"
#include "run_spec.h"

/* The kinds of the past, in the order of of[] in struct tokmap_cursor. */
enum past_kind { PAST_GEOMETRY, PAST_ORDER, PAST_BATCH, PAST_SKIPS, PAST_DATA, PAST_KINDS };

/* From the step after `step` on, the fingerprint of a kind is `hash`, until the next event. */
struct past_event {
    uint64_t step;
    struct hash128 hash;
};

struct past {
    /* The run, which the caller sets before past_init(), and which must outlive *past. */
    const struct run_spec *spec;
    const struct run_sources *sources;
    const struct phases *phases;
    struct skips *skips;
    const struct exclusions *exclusions;
    const char *path; /* for errors: the run file, or NULL */
    bool from_text;   /* errors name its lines; otherwise only the values */

    struct hash128 order;
    struct hash128 skips_end;              /* the chain after the last range of skips */
    struct past_event *events[PAST_KINDS]; /* of geometry, batch, and data: in order of step, the first at step 0 */
    uint64_t event_counts[PAST_KINDS];     /* at least 1 */
};

/* Fills the other members of *past, and the chain of each range of the skips. Free it with past_free(), after a failure
 * too. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status past_init(struct past *past, struct tokmap_error *error);
void past_free(struct past *past);

/* Fills *cursor for exactly this step, whether or not it is skipped. tokens: the tokens delivered before it, over all
 * ranks. At step 0 there is no past, so every member is 0. O(log events). Cannot fail. */
void past_cursor(const struct past *past, uint64_t step, uint64_t tokens, struct tokmap_cursor *cursor);

/* Compares the cursor *own of this run with a saved cursor of the same step. The error names each kind that differs,
 * with the lines of the run file that state it; a run that was made from arguments has no lines. Statuses: OK,
 * ERROR_PAST. */
enum tokmap_status past_compare(const struct past *past, const struct tokmap_cursor *own,
                                const struct tokmap_cursor *saved, struct tokmap_error *error);

#endif
