/* SPDX-License-Identifier: MIT */
/* cache_shard.h - a shard of the storage as files in the folder. Any thread. */
#ifndef TOKMAP_CACHE_CACHE_SHARD_H
#define TOKMAP_CACHE_CACHE_SHARD_H

#include "cache_types.h"
#include "tokmap/tokmap.h"

struct cache;
struct cache_shard;

/* Finds the shard whose index has a name in the storage, and brings its index into the folder. content: its content id
 * and index_bytes, as a manifest states them, so that an index that is in the folder is not asked for; or NULL, 0. Free
 * the shard, also after a failure. Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_MISMATCH, those of index_open(). */
enum tokmap_status cache_shard_find(struct cache *cache, const char *index_name, const uint8_t *content,
                                    uint64_t index_bytes, struct cache_shard **shard, struct tokmap_error *error);
void cache_shard_free(struct cache_shard *shard); /* accepts NULL. Attached descriptors stay attached */

/* Reports that the folder, or its table of processes, is not the one that was opened. */
enum tokmap_status cache_replaced(const struct cache *cache, struct tokmap_error *error);

void cache_shard_hold(struct cache_shard *shard);

/* Returns the path of the shard's index in the folder, beside which its other files are. */
const char *cache_shard_index(const struct cache_shard *shard);

#endif
