/* SPDX-License-Identifier: MIT */
/*
 * dataset_fetch.h - datasets in object storage, for loaders that know what they will read: what is fetched ahead, and
 * what the cache keeps. Positions are tokens of the dataset. Any thread may call these functions.
 */
#ifndef TOKMAP_DATASET_DATASET_FETCH_H
#define TOKMAP_DATASET_DATASET_FETCH_H

#include <stdbool.h>

#include "cache/cache.h"
#include "tokmap/tokmap.h"

/* Returns whether a dataset is in object storage. The functions below are for those that are. */
bool dataset_is_remote(const struct tokmap_dataset *dataset);

/* Tokens that are fetched together, a block, have a number. Returns that of the block with a token. *end: the first
 * token after it. All numbers are below dataset_fetch_blocks(). shard: of the last call, at first 0. */
uint64_t dataset_fetch_block(const struct tokmap_dataset *dataset, uint64_t token, uint64_t *shard, uint64_t *end);
uint64_t dataset_fetch_blocks(const struct tokmap_dataset *dataset);

/* Says to the cache that the block with a token is needed at row `when`, as in cache_plan(). Does nothing while the
 * shard is not open. shard: that has the token. */
void dataset_fetch_plan(const struct tokmap_dataset *dataset, uint64_t shard, uint64_t token, uint64_t when);

/* Fetches the block with a token ahead. A shard that is not open is opened for it, by a thread of the cache. */
enum fetch_asked { FETCH_THERE, FETCH_ASKED, FETCH_BUSY /* too many are asked for */ };
enum fetch_asked dataset_fetch_ask(const struct tokmap_dataset *dataset, uint64_t shard, uint64_t token, uint64_t when);

/* Opens shards from `first` on ahead, because all are about to be opened one after the other. */
void dataset_fetch_shards(const struct tokmap_dataset *dataset, uint64_t first);

/* Says which row is at hand. */
void dataset_fetch_now(const struct tokmap_dataset *dataset, uint64_t row);
/* Copies what the cache of the dataset has done. */
void dataset_fetch_count(const struct tokmap_dataset *dataset, struct cache_counts *counts);

#endif
