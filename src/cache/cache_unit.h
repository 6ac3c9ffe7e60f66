/* SPDX-License-Identifier: MIT */
/* cache_unit.h - the units of a shard: where they are in their files, and what their bytes must be. Any thread. */
#ifndef TOKMAP_CACHE_CACHE_UNIT_H
#define TOKMAP_CACHE_CACHE_UNIT_H

#include "cache_room.h"

/* Returns the units of bytes [at, at + count) of a part: [*first, *end). */
void cache_units_of(const struct cache_shard *shard, enum cache_part part, uint64_t at, uint64_t count, uint64_t *first,
                    uint64_t *end);
/* Returns the units of bytes of the tokens, uncompressed, or of the mask. */
void cache_units_in(const struct cache_shard *shard, enum cache_part part, uint64_t at, uint64_t count, uint64_t *first,
                    uint64_t *end);
/* Finds the place of units [first, end), at least one, in their file. Statuses: OK, ERROR_CORRUPT, ERROR_IO (the
 * index). */
enum tokmap_status cache_units_place(const struct cache_shard *shard, uint64_t first, uint64_t end, uint64_t *from,
                                     uint64_t *bytes, struct tokmap_error *error);
/* Returns whether bytes, as many as a unit has, are its own. reader: for sealed tokens; made when it is NULL. */
bool cache_unit_matches(const struct cache_shard *shard, uint64_t unit, const uint8_t *bytes,
                        struct sealed_reader **reader);
static inline enum cache_part cache_part_of(const struct cache_shard *shard, uint64_t unit)
{
    return unit < shard->token_units ? CACHE_TOKENS : CACHE_MASK;
}

#endif
