/* SPDX-License-Identifier: MIT */
/* token_counts.h - how often each id occurs in a dataset, and how many of its tokens count as targets. */
#ifndef TOKMAP_COMMANDS_REPORT_TOKEN_COUNTS_H
#define TOKMAP_COMMANDS_REPORT_TOKEN_COUNTS_H

#include "tokmap/tokmap.h"

/* The tokens of a synthetic dataset that are counted. It may have very many, all of the same distribution. */
#define SYNTHETIC_TOKENS ((uint64_t)1 << 27)

struct token_counts {
    uint64_t vocabulary;
    uint64_t tokens;  /* that were counted: all, or the first SYNTHETIC_TOKENS of a synthetic dataset */
    uint64_t used;    /* ids that occur */
    uint64_t **pages; /* of counters, NULL where no id of a page occurs */
    uint64_t page_count;
};

/* Reads every token. token_counts_free() must follow in any case.
 *   threads   0: one for each processor; the result is the same for every number
 *   progress  enum cli_progress_mode
 * Statuses: OK, ERROR_TOKEN (an id is not below the vocabulary), ERROR_CORRUPT (an id is above the largest one in the
 * index), ERROR_LIMIT (a vocabulary of millions of ids of which so many occur that their counters do not fit in
 * memory), ERROR_IO, ERROR_TRUNCATED, ERROR_MEMORY, ERROR_INTERRUPTED. */
enum tokmap_status token_counts_make(struct token_counts *counts, const struct tokmap_dataset *dataset,
                                     uint64_t threads, int progress, struct tokmap_error *error);
void token_counts_free(struct token_counts *counts); /* accepts zeros */

/* Returns how often an id occurs; 0 for one that is not in the vocabulary. */
uint64_t token_counts_of(const struct token_counts *counts, uint64_t id);
/* Returns the first id from `id` on that occurs, or the vocabulary if no such id occurs. */
uint64_t token_counts_next(const struct token_counts *counts, uint64_t id);

/* Returns the ids that occur most often, by count, then by id. Fills the first `room` of ids[] and returns their
 * number. */
uint64_t token_counts_top(const struct token_counts *counts, uint64_t *ids, uint64_t room);

/* Counts the tokens that count as targets: all without a mask. It reads the masks, an eighth of a byte for each token.
 * Statuses: OK, ERROR_IO, ERROR_TRUNCATED, ERROR_MEMORY, ERROR_INTERRUPTED. */
enum tokmap_status dataset_targets(const struct tokmap_dataset *dataset, uint64_t threads, int progress,
                                   uint64_t *targets, struct tokmap_error *error);

#endif
