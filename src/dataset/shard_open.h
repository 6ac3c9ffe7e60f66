/* SPDX-License-Identifier: MIT */
/* shard_open.h - opens shards: an index, and the tokens and the mask that belong to it. */
#ifndef TOKMAP_DATASET_SHARD_OPEN_H
#define TOKMAP_DATASET_SHARD_OPEN_H

#include "dataset_state.h"
#include "shard_names.h"

/* Opens the shard of a number and takes its path out of the names. Whatever the status, dataset_shard_close() frees the
 * shard. Statuses: those of index_open(), store_open(), and mask_file_open(), and ERROR_BUSY. */
enum tokmap_status shard_open(struct shard *shard, struct shard_names *names, uint64_t number,
                              struct tokmap_error *error);

/* Opens shards, as many as there are names, with several threads if there are many. It reports nothing: a shard whose
 * index_path is still NULL has not been opened, because it, or another, failed. shards: zeroed. */
void shards_open_ahead(struct shard *shards, struct shard_names *names);

#endif
