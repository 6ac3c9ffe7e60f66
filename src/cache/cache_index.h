/* SPDX-License-Identifier: MIT */
/* cache_index.h - the objects that are kept whole: the indexes of shards, and manifests. Any thread. */
#ifndef TOKMAP_CACHE_CACHE_INDEX_H
#define TOKMAP_CACHE_CACHE_INDEX_H

#include "cache_state.h"
#include "common/bytes_buffer.h"

/* Appends the text of a manifest of at most `most` bytes, which is kept in the folder and read again only when it has
 * changed; of an object that does not begin like one, only its first bytes. since_ns: when the caller began to look for
 * the dataset. Statuses: OK, ERROR_NOT_FOUND, ERROR_LIMIT, ERROR_IO, ERROR_MISMATCH, ERROR_MEMORY. */
enum tokmap_status cache_text(struct cache *cache, const char *name, uint64_t most, uint64_t since_ns,
                              struct bytes_buffer *text, struct tokmap_error *error);

/* Returns whether the folder has a manifest of that name. */
bool cache_text_is_kept(struct cache *cache, const char *name);

/* Says that cache_shard_find() has just found an index, so that the next one of that name, which follows at once, does
 * not ask the storage again. */
void cache_shard_confirm(struct cache *cache, const char *index_name);

/* Brings the index of a shard into the folder, unless it is there: see cache_shard_find(). *path: its path there, which
 * the caller frees. */
enum tokmap_status cache_index_bring(struct cache *cache, const char *name, const uint8_t *content,
                                     uint64_t index_bytes, char **path, struct tokmap_error *error);
/* Compares an index of the folder with its hashes, unless this process has just done so. Statuses: OK, those of
 * index_verify(). */
enum tokmap_status cache_index_verify(struct cache *cache, const char *path, struct index *index,
                                      struct tokmap_error *error);

#endif
