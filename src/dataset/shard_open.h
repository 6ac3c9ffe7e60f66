/* SPDX-License-Identifier: MIT */
/* shard_open.h - opens shards: an index, and the tokens and the mask that belong to it. */
#ifndef TOKMAP_DATASET_SHARD_OPEN_H
#define TOKMAP_DATASET_SHARD_OPEN_H

#include "opened_dataset.h"
#include "shard_names.h"

/* Opens the shard of an index, whose path, which may be NULL without memory, belongs to the shard from now on. cache:
 * NULL, or the path is a name in object storage, and this brings it. line: of the manifest that names the shard, or
 * NULL. The caller frees *shard with every status; it may be NULL. Statuses: those of index_open(), store_open(),
 * mask_file_open(), and cache_shard_find(), and ERROR_BUSY. */
enum tokmap_status shard_open(struct shard **shard, char *index_path, enum tokmap_reading reading, struct cache *cache,
                              const struct manifest_shard *line, struct tokmap_error *error);

/* Opens shards, as many as there are names, with several threads if there are many, but not those whose lines state
 * their sizes. It reports nothing: a shard that is still NULL has not been opened, because it, or another, failed. */
void shards_open_ahead(struct shard_slot *slots, struct shard_names *names);

/* Closes a shard that is open, or that could not be opened completely, and frees it. NULL is allowed. */
void dataset_shard_free(struct shard *shard);

#endif
