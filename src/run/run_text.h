/*
 * run_text.h - reads the text of a run into values, and remembers the line of each directive. It opens no dataset.
 * RUN.md defines the grammar.
 */
#ifndef TOKMAP_RUN_RUN_TEXT_H
#define TOKMAP_RUN_RUN_TEXT_H

#include <stddef.h>

#include "tokmap/tokmap.h"

enum {
    RUN_TEXT_MOST = 16 << 20, /* bytes in a run file */
    RUN_NAME_MOST = 64,       /* bytes in the name of a source */
};
#define RUN_SEQ_LEN_MOST ((uint64_t)1 << 31)
#define RUN_BATCH_MOST ((uint64_t)1 << 31)
#define RUN_DRAWS_MOST ((uint64_t)1 << 63) /* rows in all steps of a run */

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

/* One skip directive: steps first <= step < end are not delivered. first < end. */
struct skip_line {
    uint64_t first, end;
    uint64_t line;
};

struct run_spec {
    uint64_t seq_len, lookahead, batch, seed;
    uint64_t steps, passes; /* TOKMAP_FOREVER if not given; at most one is given */
    enum tokmap_ordering ordering;
    enum tokmap_reading reading;
    char *source;            /* its name */
    char *data;              /* the dataset as it is written in the run, without the run file's folder */
    struct skip_line *skips; /* in the order of the text; they may overlap */
    size_t skip_count;
    uint64_t lines[RUN_DIRECTIVES]; /* line of each directive, of skip the first; 0: not in the text */
};

/* Reads text[bytes] into *spec. path is only for errors: the run file, or NULL for text from memory. On success free
 * *spec with run_spec_free(); on failure nothing needs to be freed. Any thread.
 * Statuses: OK, ERROR_RUN and ERROR_UNSUPPORTED (a directive of a later version), both with the line, ERROR_LIMIT (more
 * than RUN_TEXT_MOST bytes), ERROR_MEMORY. */
enum tokmap_status run_text_read(struct run_spec *spec, const char *text, size_t bytes, const char *path,
                                 struct tokmap_error *error);

/* Frees what *spec owns and sets it to zero. A zeroed *spec is accepted. */
void run_spec_free(struct run_spec *spec);

#endif
