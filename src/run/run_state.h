/*
 * run_state.h - struct tokmap_run: a run that is open. Immutable after it was opened.
 */
#ifndef TOKMAP_RUN_RUN_STATE_H
#define TOKMAP_RUN_RUN_STATE_H

#include <stdbool.h>

#include "common/hash.h"
#include "run_text.h"

/* Skipped steps, merged: ranges rise and do not touch. */
struct skip_range {
    uint64_t first, end;
    uint64_t before;      /* steps skipped before `first` */
    struct hash128 chain; /* of the ranges before this one; see cursor.c */
};

/* Kinds of the past, as struct tokmap_cursor's of[]. */
enum past_kind { PAST_GEOMETRY, PAST_ORDER, PAST_BATCH, PAST_SKIPS, PAST_DATA, PAST_KINDS };

struct tokmap_run {
    struct run_spec spec;
    char *path;     /* of the run file; NULL if it came from memory or arguments */
    bool from_text; /* else from arguments: errors then name these instead of lines */

    struct tokmap_dataset *dataset;
    uint64_t tokens;  /* of the dataset */
    uint64_t windows; /* of one epoch, at least 1 */
    uint8_t content[16];

    uint64_t row_tokens; /* seq_len + lookahead */
    uint64_t steps;      /* end of the run, or TOKMAP_FOREVER */
    uint64_t steps_most; /* steps below it have places: `steps`, or what 2^63 draws allow */
    uint64_t remainder;

    struct skip_range *skips;
    size_t skip_count;
    struct hash128 skips_chain;      /* after the last range */
    struct hash128 past[PAST_KINDS]; /* constant parts of the fingerprint; PAST_SKIPS is the empty chain */
};

/* Index of the first range of run->skips that ends after `step`; skip_count if there is none. */
size_t run_skip_at(const struct tokmap_run *run, uint64_t step);

/* Fills run->past and the chains of run->skips. */
void run_past_init(struct tokmap_run *run);

/* Where epoch `epoch`'s grid begins. */
uint64_t run_shift(const struct tokmap_run *run, uint64_t epoch);

#endif
