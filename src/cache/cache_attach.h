/* SPDX-License-Identifier: MIT */
/*
 * cache_attach.h - descriptors of a shard's files that the cache fills when they are read, and what a loader says of
 * their future. Any thread may call these functions, and a child after fork() too.
 */
#ifndef TOKMAP_CACHE_CACHE_ATTACH_H
#define TOKMAP_CACHE_CACHE_ATTACH_H

#include <stdbool.h>

#include "cache_shard.h"

/* Puts the cache before a descriptor of the tokens or the mask of a shard that was found, until it is closed, and sets
 * *name to the name of the object, which the caller frees. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status cache_shard_attach(struct cache_shard *shard, enum cache_part part, int fd, char **name,
                                      struct tokmap_error *error);

/* Says that the readers of the descriptor compare the bytes with hashes of their own. Otherwise each cell is compared
 * when this process uses it for the first time, as a whole. Returns false if no cache is before the descriptor. */
bool cache_compared_later(int fd);
/* Says that bytes of the file were read and do not match, so they are fetched again when they are read next. Returns
 * false if that was done before: the object itself is damaged. */
bool cache_distrust(int fd, uint64_t at, uint64_t bytes);

/* Bytes below are those of the tokens, uncompressed, or of the mask.
 *
 * Rows of the calling loader are counted from 0 on. cache_plan() says that bytes are needed at row `when`, the next
 * time; UINT64_MAX: not as far as is known. cache_now() says which row is at hand, and for
 * how many rows after it the loader has asked. */
void cache_plan(int fd, uint64_t at, uint64_t bytes, uint64_t when);
void cache_now(struct cache *cache, uint64_t row, uint64_t ahead);
/* Fetches bytes ahead, on the threads of the cache. *absent is set if some are not there. Returns false if the threads
 * have enough to do. */
bool cache_ask(int fd, uint64_t at, uint64_t bytes, uint64_t when, bool *absent);
/* Fetches bytes, and returns when they are there, when somebody else fetches them, or when that fails. */
void cache_fetch_now(int fd, uint64_t at, uint64_t bytes);

#endif
