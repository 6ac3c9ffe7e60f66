/* SPDX-License-Identifier: MIT */
/* cache_evict.h - gives cells up for others, and says how far ahead there is room. Any thread. */
#ifndef TOKMAP_CACHE_CACHE_EVICT_H
#define TOKMAP_CACHE_CACHE_EVICT_H

#include "cache_state.h"

/* Makes and reserves room for `bytes` of cells that are needed in `distance` rows, until cache_room_end(). The process
 * has a number, from cache_claim(). Returns false if nothing may be given up; with distance 0 the room is reserved all
 * the same, and the disk may have it. */
bool cache_room(struct cache *cache, uint64_t bytes, uint64_t distance);
void cache_room_end(struct cache *cache, uint64_t bytes, bool stored); /* stored: they take the room now */

/* Returns in how many rows at most something may be needed that there is room for; UINT64_MAX if nothing was given up
 * yet. *changes is another number than before when something was given up, or was asked for and found no room. */
uint64_t cache_reach(const struct cache *cache, uint64_t *changes);
/* Returns how many cells a loader asks for that no row has used yet: many while there is room, and later an eighth of
 * the cache at most, because each takes the place of something. */
uint64_t cache_ahead(const struct cache *cache);

#endif
