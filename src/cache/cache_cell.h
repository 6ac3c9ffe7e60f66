/* SPDX-License-Identifier: MIT */
/* cache_cell.h - the cells of a shard: where they are in their files, and what their bytes must be. Any thread. */
#ifndef TOKMAP_CACHE_CACHE_CELL_H
#define TOKMAP_CACHE_CACHE_CELL_H

#include "cache_room.h"

/* Returns the cells of bytes [at, at + count) of a part: [*first, *end). */
void cache_cells_of(const struct cache_shard *shard, enum cache_part part, uint64_t at, uint64_t count, uint64_t *first,
                    uint64_t *end);
/* Returns the cells of bytes of the tokens, uncompressed, or of the mask. */
void cache_cells_in(const struct cache_shard *shard, enum cache_part part, uint64_t at, uint64_t count, uint64_t *first,
                    uint64_t *end);
/* Finds the place of cells [first, end), at least one, in their file. Statuses: OK, ERROR_CORRUPT, ERROR_IO (the
 * index). */
enum tokmap_status cache_cells_place(const struct cache_shard *shard, uint64_t first, uint64_t end, uint64_t *from,
                                     uint64_t *bytes, struct tokmap_error *error);
/* Returns whether bytes, as many as a cell has, are its own. reader: for sealed tokens; made when it is NULL. */
bool cache_cell_matches(const struct cache_shard *shard, uint64_t cell, const uint8_t *bytes,
                        struct sealed_reader **reader);
static inline enum cache_part cache_part_of(const struct cache_shard *shard, uint64_t cell)
{
    return cell < shard->token_cells ? CACHE_TOKENS : CACHE_MASK;
}

#endif
