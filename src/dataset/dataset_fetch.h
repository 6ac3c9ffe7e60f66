/* SPDX-License-Identifier: MIT */
/*
 * dataset_fetch.h - datasets in object storage, for loaders that know what they will read: what is fetched ahead, and
 * what the cache keeps. Positions are tokens of the dataset. Any thread may call these functions.
 */
#ifndef TOKMAP_DATASET_DATASET_FETCH_H
#define TOKMAP_DATASET_DATASET_FETCH_H

#include <stdbool.h>

#include "cache/cache_folder.h"

/* Each shard's tokens are cut into cells of `bytes` bytes, a multiple of a token's, uncompressed: CACHE_CELL, or what a
 * request fetches. Returns the cell with a token. *shard: of the last call, at first 0, and then that of the token. For
 * any dataset; one that is synthetic counts as a shard. */
struct fetch_cell {
    uint64_t number;     /* below dataset_fetch_cells(); some numbers are left out */
    uint64_t first, end; /* its tokens that the dataset has */
};
struct fetch_cell dataset_fetch_cell(const struct tokmap_dataset *dataset, uint64_t bytes, uint64_t token,
                                     uint64_t *shard);
uint64_t dataset_fetch_cells(const struct tokmap_dataset *dataset, uint64_t bytes);

/* Returns the cache of a dataset in object storage; otherwise NULL. The functions below are for datasets that have
 * one. */
struct cache *dataset_cache(const struct tokmap_dataset *dataset);

/* Returns the tokens of a shard: [*first, *end). */
void dataset_fetch_shard(const struct tokmap_dataset *dataset, uint64_t shard, uint64_t *first, uint64_t *end);

/* Says to the cache that the cell with a token is needed at row `when`, as in cache_plan(), if its shard is open.
 * Returns the number of the shard's opening, which differs from all others; 0: it is not open. shard: that has the
 * token. */
uint64_t dataset_fetch_plan(const struct tokmap_dataset *dataset, uint64_t shard, uint64_t token, uint64_t when);

/* Fetches the cell with a token ahead. A shard that is not open is opened for it, by a thread of the cache. */
enum fetch_asked { FETCH_THERE, FETCH_ASKED, FETCH_BUSY /* too many are asked for */ };
enum fetch_asked dataset_fetch_ask(const struct tokmap_dataset *dataset, uint64_t shard, uint64_t token, uint64_t when);

/* Returns whether the shards of `count` tokens are open. The dataset begins again past its end. */
bool dataset_fetch_is_open(const struct tokmap_dataset *dataset, uint64_t token, uint64_t count);

/* Opens the shards beside one that is about to be opened ahead, because all will be, one after the other. */
void dataset_fetch_shards(const struct tokmap_dataset *dataset, uint64_t number);

#endif
