/*
 * dataset_extents.h - which stored tokens a dataset holds, whatever its name: two datasets hold some of the same tokens
 * if an extent of one overlaps an extent of the other. Example: a folder with the shards of two sets, and one of the
 * sets, have the extents of that set's shards in common; #docs=0..90% and #docs=90..100% of one shard have none.
 */
#ifndef TOKMAP_DATASET_DATASET_EXTENTS_H
#define TOKMAP_DATASET_DATASET_EXTENTS_H

#include "tokmap/tokmap.h"

/* Numbers [from, to) of what `of` identifies: tokens of a shard, by its content id; bytes of a file with tokens, by its
 * device and inode; or tokens of a dataset that has no shards, or none with a content id, by its identity. Empty if
 * from == to. */
struct dataset_extent {
    uint8_t of[16];
    uint64_t from, to;
};

/* The number of extents of a dataset, some of which may be empty: those of shard s are 2 * s and 2 * s + 1. */
uint64_t dataset_extent_count(const struct tokmap_dataset *dataset);

/* Fills all of them. A file that was removed in the meantime has none. Cannot fail. */
void dataset_extents(const struct tokmap_dataset *dataset, struct dataset_extent *extents);

#endif
