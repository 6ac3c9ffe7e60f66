/* SPDX-License-Identifier: MIT */
/* cache_pool.h - the threads of a cache, which fetch what will be needed. Any thread. */
#ifndef TOKMAP_CACHE_CACHE_POOL_H
#define TOKMAP_CACHE_CACHE_POOL_H

#include "cache_state.h"

/* Calls work(user, number) on one of the threads: to open a shard ahead. user: not NULL, which is that of idle threads.
 * Returns false if they have enough to do. */
bool cache_ask_work(struct cache *cache, void (*work)(void *user, uint64_t number), void *user, uint64_t number);
/* Forgets such work of a user, and waits for what is being done. */
void cache_forget(struct cache *cache, void *user);

/* Ends the threads of this process. */
void cache_pool_close(struct cache *cache);
/* Asks for cells [first, end): see cache_ask(). */
bool cache_cells_ask(struct cache_shard *shard, uint64_t first, uint64_t end, uint64_t when, bool *absent);

#endif
