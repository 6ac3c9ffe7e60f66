/*
 * run_text.h - the text of a run, read: values, the line of each directive, nothing opened. RUN.md is the grammar.
 */
#ifndef TOKMAP_RUN_RUN_TEXT_H
#define TOKMAP_RUN_RUN_TEXT_H

#include <stddef.h>

#include "tokmap/tokmap.h"

enum {
    RUN_TEXT_MOST = 16 << 20, /* bytes of a run file */
    RUN_NAME_MOST = 64,       /* bytes of a source's name */
};
#define RUN_SEQ_LEN_MOST ((uint64_t)1 << 31)
#define RUN_BATCH_MOST ((uint64_t)1 << 31)
#define RUN_DRAWS_MOST ((uint64_t)1 << 63) /* rows of all steps of a run */

enum run_directive {
    RUN_SEQ_LEN,
    RUN_LOOKAHEAD,
    RUN_BATCH,
    RUN_SEED,
    RUN_ORDER,
    RUN_SOURCE,
    RUN_PASSES,
    RUN_STEPS,
    RUN_SKIP,
    RUN_DIRECTIVES
};

/* Steps first <= step < end that are not delivered. */
struct skip_line {
    uint64_t first, end;
    uint64_t line;
};

struct run_spec {
    uint64_t seq_len, lookahead, batch, seed;
    uint64_t steps, passes; /* or TOKMAP_FOREVER; not both are given */
    enum tokmap_ordering ordering;
    enum tokmap_reading reading;
    char *source;            /* name */
    char *data;              /* as it was written; the folder is not in it */
    struct skip_line *skips; /* as they were written */
    size_t skip_count;
    uint64_t lines[RUN_DIRECTIVES]; /* where each stands, the first for skip; 0: not given */
};

/* Reads text[bytes] of the file `path` (NULL: from memory). On failure nothing needs to be freed.
 * Statuses: OK, ERROR_RUN, ERROR_UNSUPPORTED (what later versions will read), ERROR_LIMIT, ERROR_MEMORY; each of the
 * first two with its line. */
enum tokmap_status run_text_read(struct run_spec *spec, const char *text, size_t bytes, const char *path,
                                 struct tokmap_error *error);
void run_spec_free(struct run_spec *spec);

#endif
