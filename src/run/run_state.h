/*
 * run_state.h - struct tokmap_run: an open run. Immutable after it was opened, so any number of threads may use it.
 */
#ifndef TOKMAP_RUN_RUN_STATE_H
#define TOKMAP_RUN_RUN_STATE_H

#include <stdbool.h>

#include "past.h"
#include "run_text.h"
#include "skips.h"

struct tokmap_run {
    struct run_spec spec;
    char *path;     /* of the run file; NULL for a run from memory or from arguments */
    char *data;     /* the name with which the dataset was opened */
    bool from_text; /* the run was read from text, so errors name its lines; otherwise they name the arguments */

    struct tokmap_dataset *dataset;
    uint64_t tokens;  /* in the dataset */
    uint64_t windows; /* of one epoch, at least 1 */

    uint64_t row_tokens; /* seq_len + lookahead */
    uint64_t steps;      /* end of the run, or TOKMAP_FOREVER */
    uint64_t steps_most; /* first step without rows: `steps`, or less if 2^63 draws end before it */
    uint64_t remainder;  /* with `passes`: windows that fill no whole step */

    struct skips skips;
    struct past past;
};

#endif
