/* SPDX-License-Identifier: MIT */
/*
 * run.h - what the other files of this room and the loader need of a run beyond the public header: its steps, the rows
 * of a rank, its datasets. locate.h has the places of rows. All functions are pure, work from any thread, and cannot
 * fail.
 */
#ifndef TOKMAP_RUN_RUN_H
#define TOKMAP_RUN_RUN_H

#include <stdbool.h>

#include "dataset/dataset_extents.h"
#include "run_spec.h"

struct exclusions;
struct skips;

/* Reports the rows that belong to rank `rank` of `world` in a global batch of `rows` rows: [*first, *first + *count).
 * rank < world. */
void run_rank_rows(uint64_t rows, uint64_t rank, uint64_t world, uint64_t *first, uint64_t *count);

/* Returns the number of calls in which each rank gets its rows of a step, the same for every rank. rows: the most of a
 * call; 0: all. */
uint64_t run_calls(uint64_t batch, uint64_t world, uint64_t rows);

/* Reports which of the `slice` rows of a rank a call delivers: [*first, *first + *count). call < calls. */
void run_call_rows(uint64_t slice, uint64_t call, uint64_t calls, uint64_t *first, uint64_t *count);

/* Returns the first delivered step >= step, or TOKMAP_FOREVER if the run delivers no more. O(log skips). */
uint64_t run_next_step(const struct tokmap_run *run, uint64_t step);

/* Returns the number of delivered steps in [0, step). O(log skips). */
uint64_t run_delivered_before(const struct tokmap_run *run, uint64_t step);

/* Returns the tokens delivered in steps [0, step): rows * seq_len, without skipped steps, with padding; UINT64_MAX if
 * the number is larger. step: at most the run's end. O(log phases + log skips). */
uint64_t run_tokens_before(const struct tokmap_run *run, uint64_t step);

/* The values of a run of one source without phases, as a command has them. The source is called "data". */
struct run_values {
    const char *data; /* name of its dataset */
    uint64_t seq_len, lookahead, batch, seed;
    enum tokmap_order_kind order; /* not TOKMAP_BLOCKS */
    uint64_t steps, passes;       /* TOKMAP_FOREVER in at least one of them */
};

/* Opens a run from values. It is the run of a text with the same values, but errors name no line.
 * Statuses: those of tokmap_run_open(), except ERROR_RUN. */
enum tokmap_status run_of_values(struct tokmap_run **run, const struct run_values *values, struct tokmap_error *error);

/* Opens a run whose text has been read, or whose values are arguments. Takes ownership of *spec, whatever the status.
 *   path       of the run file, or NULL
 *   folder     from which relative names start; NULL: the current folder
 *   from_text  errors name lines of a text; otherwise only the values
 * Statuses: those of tokmap_run_open(), except of reading the text. */
enum tokmap_status run_new(struct tokmap_run **run, struct run_spec *spec, const char *path, const char *folder,
                           bool from_text, struct tokmap_error *error);

/* Return what tokmap_run_info(), tokmap_run_source(), and tokmap_run_phase() fill in, of a source (or a validation set)
 * and a phase that the run has. They set the size themselves. */
struct tokmap_run_info info_of_run(const struct tokmap_run *run);
struct tokmap_source_info info_of_source(const struct tokmap_run *run, uint64_t source);
struct tokmap_phase_info info_of_phase(const struct tokmap_run *run, uint64_t phase);

/* Returns the source of a share of a phase; the run has both. */
uint64_t run_share_source(const struct tokmap_run *run, uint64_t phase, uint64_t share);

/* Returns the draws of a source in all steps before `step`, which is at most the run's end. */
uint64_t run_drawn(const struct tokmap_run *run, uint64_t source, uint64_t step);

/* Returns the steps that the run skips (run_spec.h). They live as long as the run. */
const struct skips *run_skips(const struct tokmap_run *run);

/* Returns the documents that the run excludes (exclusion.h). They live as long as the run. */
const struct exclusions *run_exclusions(const struct tokmap_run *run);

/* Returns the path of the run file; NULL for a run from a text or from arguments. It lives as long as the run. */
const char *run_path(const struct tokmap_run *run);

/* The sequence length and the rows of a step's phase, and the number of the step after the phase's last one. Any step.
 * O(log phases). */
struct run_step {
    uint64_t seq_len, batch;
    uint64_t end_step; /* the next phase's first step, or TOKMAP_FOREVER */
    uint64_t valid;    /* rows of this step that are not padding */
    uint64_t same_end; /* the steps from this one up to, not including, that one have the same values */
    uint64_t phase;    /* its number */
};
void run_phase_of(const struct tokmap_run *run, uint64_t step, struct run_step *out);

/* Lists what a run trains on: the stored tokens of every source that some step before its end draws. Held-out data is
 * compared with it by the content of shards, not by the names of datasets. Free *trained with every status. Statuses:
 * OK, ERROR_MEMORY. */
enum tokmap_status run_trained(const struct tokmap_run *run, struct dataset_extents *trained,
                               struct tokmap_error *error);

#endif
