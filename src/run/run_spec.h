/* SPDX-License-Identifier: MIT */
/*
 * run_spec.h - the values of a run's text, and the line of each directive. RUN.md defines what they mean. Everything
 * here is as it was written: no dataset has been opened.
 */
#ifndef TOKMAP_RUN_RUN_SPEC_H
#define TOKMAP_RUN_RUN_SPEC_H

#include <stdbool.h>
#include <stddef.h>

#include "common/hash.h"
#include "tokmap/tokmap.h"

enum {
    RUN_TEXT_MOST = 16 << 20, /* bytes in a run file */
    RUN_NAME_MOST = 64,       /* bytes in the name of a source */
    RUN_SHARE_DECIMALS = 9,   /* digits after the point of a share */
    RUN_EXCLUDES_MOST = 256,  /* lists of excluded documents */
};
#define RUN_SEQ_LEN_MOST ((uint64_t)1 << 31)
#define RUN_BATCH_MOST ((uint64_t)1 << 31)
#define RUN_BLOCKS_MOST ((uint64_t)1 << 31) /* each number of `order blocks` */
#define RUN_PAD_MOST (((uint64_t)1 << 32) - 1)
#define RUN_DRAWS_MOST ((uint64_t)1 << 63)         /* rows in all steps of a run */
#define RUN_WEIGHTS_MOST (((uint64_t)1 << 63) - 1) /* sum of a phase's weights */

enum run_directive {
    RUN_SEQ_LEN,
    RUN_LOOKAHEAD,
    RUN_BATCH,
    RUN_SEED,
    RUN_ORDER,
    RUN_SOURCE,
    RUN_PHASE,
    RUN_STRIDE,
    RUN_TAIL,
    RUN_PAD,
    RUN_PASSES,
    RUN_STEPS,
    RUN_SKIP,
    RUN_VALIDATION,
    RUN_EXCLUDE,
    RUN_DIRECTIVES
};

/* One source directive, or one validation directive, which has a name, a dataset, and a line. */
struct source_line {
    char *name;
    char *data;           /* the dataset as it is written in the run, without the run file's folder */
    char *plan;           /* the plan file, as written; NULL: the source draws windows */
    uint64_t epochs_most; /* N of epochs<=N; 0: no limit */
    uint64_t line;        /* 0: not from text */
};

enum weight_kind {
    WEIGHTS_NONE,    /* the line gives no weights, so the mixture continues */
    WEIGHTS_SHARES,  /* decimal shares, multiplied by a common power of ten */
    WEIGHTS_NATURAL, /* each source by the number of its windows; weight_count 0: all sources of the run */
    WEIGHTS_TOKENS,  /* tokens of the phase */
};

struct phase_weight {
    size_t source;   /* index in run_spec.sources */
    uint64_t amount; /* the share or the tokens; 0: the source is not drawn in this phase; 0 if weights are natural */
};

/* One phase directive. */
struct phase_line {
    uint64_t step; /* the first step of the phase */
    uint64_t line;
    uint64_t batch, seq_len; /* 0: continues */
    enum weight_kind kind;
    uint32_t decimals;            /* of shares: amounts are multiplied by 10^decimals */
    struct phase_weight *weights; /* in the order of the text; each source at most once; shares and tokens are not all
                                     0, and their sum is at most RUN_WEIGHTS_MOST */
    size_t weight_count;
};

/* One skip directive: steps first <= step < end are not delivered. first < end. */
struct skip_line {
    uint64_t first, end;
    uint64_t line;
};

/* One exclude directive: from a step on, the documents of a list are not shown. */
struct exclude_line {
    char *file; /* the list as it is written in the run, without the run file's folder */
    uint64_t step;
    uint64_t line;
};

struct run_spec {
    uint64_t seq_len, lookahead, batch, seed; /* of the first phase */
    uint64_t steps, passes;                   /* TOKMAP_FOREVER if not given; at most one is given */
    size_t passes_of;                         /* the source whose passes end the run; SIZE_MAX: `passes` names none */
    enum tokmap_order_kind order;
    uint64_t blocks, span; /* W and SPAN of TOKMAP_BLOCKS and TOKMAP_EVEN, otherwise 0 */
    uint64_t stride;       /* 0: seq_len, whatever it is in a phase; otherwise at most every seq_len of the run */
    bool tail_pad;
    uint64_t pad_id; /* TOKMAP_NO_ID: the id that ends documents, or 0 without one */
    enum tokmap_reading reading;
    struct source_line *sources; /* at least one, in the order of the text; names differ */
    size_t source_count;
    struct source_line *validations; /* in the order of the text; no name is that of another one or of a source */
    size_t validation_count;
    struct phase_line *phases; /* by step, strictly increasing. With several sources the first has step 0 and weights */
    size_t phase_count;
    struct skip_line *skips; /* in the order of the text; they may overlap */
    size_t skip_count;
    struct exclude_line *excludes; /* in the order of the text */
    size_t exclude_count;
    uint64_t lines[RUN_DIRECTIVES]; /* line of each directive, of those that repeat the first; 0: not in the text */
};

/* Returns the number of sources and validation sets. */
static inline size_t run_spec_lines(const struct run_spec *spec)
{
    return spec->source_count + spec->validation_count;
}

/* Returns the line of source number `number`; from source_count on, those of the validation sets follow. */
static inline const struct source_line *run_spec_line(const struct run_spec *spec, uint64_t number)
{
    return number < spec->source_count ? &spec->sources[number] : &spec->validations[number - spec->source_count];
}

/* Frees what *spec owns and sets it to zero. A zeroed *spec is accepted. */
void run_spec_free(struct run_spec *spec);

/* Returns whether the order cuts epochs into blocks. */
static inline bool run_spec_has_blocks(const struct run_spec *spec)
{
    return spec->order == TOKMAP_BLOCKS || spec->order == TOKMAP_EVEN;
}

/* ---- the steps of a run that are never delivered, as ranges that are merged and sorted ---- */

/* Steps first <= step < end are skipped. */
struct skip_range {
    uint64_t first, end;
    uint64_t before;      /* number of skipped steps below `first` */
    struct hash128 chain; /* fingerprint of the ranges before this one; past_init() fills it */
};

/* Ranges in increasing order. They neither overlap nor touch, so the step after a range is always delivered. */
struct skips {
    struct skip_range *ranges;
    size_t count;
};

/* Sorts and merges the `count` skip lines of a run into *skips. count may be 0; then nothing is allocated. Free *skips
 * with skips_free(), after a failure too. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status skips_merge(struct skips *skips, const struct skip_line *lines, size_t count,
                               struct tokmap_error *error);
void skips_free(struct skips *skips);

/* Returns the index of the first range that ends after `step`, or skips->count if every range ends at or before it. The
 * range holds the step only if it also begins at or before it. O(log ranges). */
size_t skips_index(const struct skips *skips, uint64_t step);

/* Returns the number of skipped steps below `step`. O(log ranges). */
uint64_t skips_before(const struct skips *skips, uint64_t step);

/* Returns the first step >= `step` that is not skipped. O(log ranges). */
uint64_t skips_next_delivered(const struct skips *skips, uint64_t step);

#endif
