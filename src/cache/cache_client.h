/* SPDX-License-Identifier: MIT */
/* cache_client.h - the connections of a cache, which threads take in turn. Any thread. */
#ifndef TOKMAP_CACHE_CACHE_CLIENT_H
#define TOKMAP_CACHE_CACHE_CLIENT_H

#include "cache_state.h"

/* Takes an idle connection, or makes one. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status cache_client_take(struct cache *cache, struct cache_client **client, struct tokmap_error *error);
void cache_client_return(struct cache *cache, struct cache_client *client);
void cache_clients_free(struct cache *cache);

/* Says which word is not 0 when what this thread does is not wanted any more; or NULL. Its requests then end. */
void cache_client_stops(const uint32_t *word);

#endif
