/*
 * past.h - the past of a run: everything that decided which rows were delivered before a step. A cursor stores its
 * fingerprint, and a run resumes on a cursor only if its own past before that step has the same fingerprint.
 */
#ifndef TOKMAP_RUN_PAST_H
#define TOKMAP_RUN_PAST_H

#include <stdbool.h>

#include "common/hash.h"
#include "run_text.h"
#include "skips.h"

/* The kinds of the past, in the order of of[] in struct tokmap_cursor. */
enum past_kind { PAST_GEOMETRY, PAST_ORDER, PAST_BATCH, PAST_SKIPS, PAST_DATA, PAST_KINDS };

struct past {
    const struct run_spec *spec; /* what the hashes below were made of; owned by the run, as are the skips */
    const struct skips *skips;
    uint8_t content[16];             /* content id of the dataset */
    struct hash128 kind[PAST_KINDS]; /* hash of each kind; that of PAST_SKIPS is the chain before the first range */
    struct hash128 skips_chain;      /* chain after the last range of skips */
};

/* Fills *past, and the chain of each range of *skips. spec and skips must outlive *past. Cannot fail. */
void past_init(struct past *past, const struct run_spec *spec, struct skips *skips, const uint8_t content[16]);

/* Fills *cursor for exactly this step, whether or not it is skipped. tokens: the tokens delivered before it, over all
 * ranks. At step 0 there is no past, so every member is 0. Cannot fail. */
void past_cursor(const struct past *past, uint64_t step, uint64_t tokens, struct tokmap_cursor *cursor);

/* Compares the cursor *own of this run with a saved cursor of the same step. The error names each kind that differs,
 * with the lines of the run file `path` that state it; path is NULL for a run from memory. named_lines: the run was
 * read from text, so errors name its lines; otherwise it was made from arguments, and errors name those.
 * Statuses: OK, ERROR_PAST. */
enum tokmap_status past_compare(const struct past *past, const struct tokmap_cursor *own,
                                const struct tokmap_cursor *saved, const char *path, bool named_lines,
                                struct tokmap_error *error);

#endif
