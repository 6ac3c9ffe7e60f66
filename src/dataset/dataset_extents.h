/* SPDX-License-Identifier: MIT */
/*
 * dataset_extents.h - which stored tokens datasets hold, whatever their names: two datasets hold some of the same
 * tokens if an extent of one overlaps an extent of the other. Example: a folder with the shards of two sets, and one of
 * the sets, have the extents of that set's shards in common; #docs=0..90% and #docs=90..100% of one shard have none.
 */
#ifndef TOKMAP_DATASET_DATASET_EXTENTS_H
#define TOKMAP_DATASET_DATASET_EXTENTS_H

#include "tokmap/tokmap.h"

/* The extents of several datasets; zeroed, it is empty. */
struct dataset_extents {
    struct dataset_extent *of; /* by what they are of, then by their numbers; none overlaps another */
    uint64_t count, capacity;
};

/* Adds those of a dataset, which the caller numbers. Call dataset_extents_sort() after the last one. Statuses: OK,
 * ERROR_MEMORY. */
enum tokmap_status dataset_extents_add(struct dataset_extents *extents, const struct tokmap_dataset *dataset,
                                       uint64_t number, struct tokmap_error *error);
void dataset_extents_sort(struct dataset_extents *extents);
void dataset_extents_free(struct dataset_extents *extents);

/* Returns the number of a dataset that has some of a dataset's tokens, or UINT64_MAX if none has, and in *path the file
 * of the latter that has them, which the caller frees. NULL: they are those of the whole dataset, or there is no
 * memory. */
uint64_t dataset_extents_find(const struct dataset_extents *extents, const struct tokmap_dataset *dataset, char **path);

#endif
