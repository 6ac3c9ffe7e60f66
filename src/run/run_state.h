/* SPDX-License-Identifier: MIT */
/*
 * run_state.h - struct tokmap_run: an open run. Immutable after it was opened, so any number of threads may use it.
 */
#ifndef TOKMAP_RUN_RUN_STATE_H
#define TOKMAP_RUN_RUN_STATE_H

#include <stdbool.h>

#include "exclusion.h"
#include "past.h"
#include "phases.h"
#include "run_sources.h"
#include "run_spec.h"

struct tokmap_run {
    struct run_spec spec;
    char *path;     /* of the run file; NULL for a run from memory or from arguments */
    char *text;     /* see tokmap_run_text() */
    bool from_text; /* the run was read from text, so errors name its lines; otherwise only the values */

    struct run_sources sources;
    struct phases phases;
    struct skips skips;
    struct exclusions exclusions;
    uint64_t *tokens_before; /* delivered before each of the phases; UINT64_MAX if the number is larger */
    struct past past;
};

#endif
