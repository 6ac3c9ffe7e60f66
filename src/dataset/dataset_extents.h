/* SPDX-License-Identifier: MIT */
/*
 * dataset_extents.h - which stored tokens a dataset holds, whatever its name: two datasets hold some of the same tokens
 * if an extent of one overlaps an extent of the other. Example: a folder with the shards of two sets, and one of the
 * sets, have the extents of that set's shards in common; #docs=0..90% and #docs=90..100% of one shard have none.
 */
#ifndef TOKMAP_DATASET_DATASET_EXTENTS_H
#define TOKMAP_DATASET_DATASET_EXTENTS_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

/* Numbers [from, to), not empty, of what `of` identifies: tokens of a shard, by its content id; bytes of a file with
 * tokens, by its device and inode; or tokens of a dataset that has no shards, or none with a content id, by its
 * identity. */
struct dataset_extent {
    uint8_t of[16];
    uint64_t from, to;
};

/* Returns the largest number of extents that the dataset can have. */
uint64_t dataset_extents_most(const struct tokmap_dataset *dataset);

/* Finds the extent of a number below that. Returns false if it has no extent, as for a file that was removed. */
bool dataset_extent(const struct tokmap_dataset *dataset, uint64_t number, struct dataset_extent *extent);

/* Returns the path of the file with its tokens, which the caller frees. NULL: the extent is that of the whole dataset,
 * or there is no memory. */
char *dataset_extent_path(const struct tokmap_dataset *dataset, uint64_t number);

#endif
