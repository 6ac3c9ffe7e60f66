/* SPDX-License-Identifier: MIT */
/* run_help.h - the texts of runs that tests open. */
#ifndef TOKMAP_SUPPORT_RUN_HELP_H
#define TOKMAP_SUPPORT_RUN_HELP_H

#include <inttypes.h>
#include <stdio.h>

#include "tokmap/run.h"

/* Opens the run of a text whose relative paths start from `folder`. */
static inline enum tokmap_status run_parse_in(struct tokmap_run **run, const char *text, const char *folder,
                                              struct tokmap_error *error)
{
    struct tokmap_run_options options = TOKMAP_RUN_OPTIONS_INIT;
    options.folder = folder;
    return tokmap_run_parse(run, text, &options, error);
}

/* Opens the run of a text, whose tokens are read as `reading` says. */
static inline enum tokmap_status run_parse_reading(struct tokmap_run **run, const char *text,
                                                   enum tokmap_reading reading, struct tokmap_error *error)
{
    struct tokmap_run_options options = TOKMAP_RUN_OPTIONS_INIT;
    options.reading = reading;
    return tokmap_run_parse(run, text, &options, error);
}

/* A run of one source, "data". */
struct simple_run {
    const char *data;
    uint64_t seq_len, lookahead, batch, seed;
    enum tokmap_order_kind order;
    uint64_t steps, passes;
    enum tokmap_reading reading;
};
#define SIMPLE_RUN_INIT                                                                                                \
    {                                                                                                                  \
        NULL, 0, 1, 1, 0, TOKMAP_SHUFFLE, TOKMAP_FOREVER, TOKMAP_FOREVER, TOKMAP_READ_AUTO                             \
    }

/* Writes the text of such a run and opens it. The name of the dataset has no quotation mark. */
static inline enum tokmap_status simple_run_open(struct tokmap_run **run, const struct simple_run *values,
                                                 struct tokmap_error *error)
{
    char text[5000], end[64] = "";
    if (values->steps != TOKMAP_FOREVER)
        snprintf(end, sizeof end, "steps %" PRIu64 "\n", values->steps);
    if (values->passes != TOKMAP_FOREVER)
        snprintf(end, sizeof end, "passes %" PRIu64 "\n", values->passes);
    snprintf(text, sizeof text,
             "seq_len %" PRIu64 "\nlookahead %" PRIu64 "\nbatch %" PRIu64 "\nseed %" PRIu64
             "\norder %s\nsource data \"%s\"\n%s",
             values->seq_len, values->lookahead, values->batch, values->seed,
             values->order == TOKMAP_SEQUENTIAL ? "sequential" : "shuffle", values->data, end);
    return run_parse_reading(run, text, values->reading, error);
}

#endif
