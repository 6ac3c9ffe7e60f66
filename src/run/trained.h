/* SPDX-License-Identifier: MIT */
/*
 * trained.h - what a run trains on: the stored tokens of every source that some step before its end draws. Held-out
 * data is compared with it by the content of shards, not by the names of datasets.
 */
#ifndef TOKMAP_RUN_TRAINED_H
#define TOKMAP_RUN_TRAINED_H

#include <stdbool.h>

#include "phases.h"
#include "run_sources.h"

struct trained_extent;

struct trained {
    struct trained_extent *extents; /* by what they are of, then by their numbers; none overlaps another */
    uint64_t count;
};

/* Returns whether some step before the run's end draws a source. */
bool trained_source(const struct phases *phases, uint64_t source);

/* Lists the tokens. Free *trained with trained_free(), after a failure too. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status trained_init(struct trained *trained, const struct run_sources *sources, const struct phases *phases,
                                struct tokmap_error *error);
void trained_free(struct trained *trained);

/* Returns the number of a source that has some of a dataset's tokens, or UINT64_MAX if none has, and in *path the file
 * of the dataset that has them, which the caller frees: see dataset_extent_path(). */
uint64_t trained_find(const struct trained *trained, const struct tokmap_dataset *dataset, char **path);

#endif
