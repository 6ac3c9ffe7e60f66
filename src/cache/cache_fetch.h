/* SPDX-License-Identifier: MIT */
/* cache_fetch.h - brings cells from the storage into the folder. Any thread. */
#ifndef TOKMAP_CACHE_CACHE_FETCH_H
#define TOKMAP_CACHE_CACHE_FETCH_H

#include "cache_state.h"

/* Makes a cell present. distance: in how many rows it is needed; 0: somebody waits. wait: otherwise it is left to
 * the fetch that runs now. Statuses: OK, those of remote_range_read(), ERROR_CORRUPT (the object does not match its
 * index, twice), ERROR_IO (the folder). */
enum tokmap_status cache_fetch(struct cache_shard *shard, uint64_t cell, uint64_t distance, bool wait,
                               struct tokmap_error *error);
/* Repeats requests that take too long. */
void cache_repeat_slow(struct cache *cache);

#endif
