/* SPDX-License-Identifier: MIT */
/*
 * cache_cell.c - the cells of a shard, as ranges of its files that have a hash: a cell is one of them, or, of a sealed
 * shard, 16.
 *
 * Example: a shard of 2,500,000 tokens of 2 bytes, with a mask. Cells 0 to 4 are its tokens, 1 MiB each and the last
 * one 805,696 bytes; cell 5 is the mask, of 312,500 bytes. If the shard is sealed, cell 0 is frames 0 to 15 of its
 * file, and what follows the last frame, the seek table for other programs, belongs to the last cell.
 */

#include "cache_cell.h"

#include <assert.h>

#include "common/bytes.h"
#include "format/shard_ranges.h"

_Static_assert(CACHE_CELL == BLOCK_BYTES && CACHE_CELL % FRAME_BYTES == 0, "a cell is whole ranges");

/* The cells of a file. */
struct file_cells {
    enum shard_file file;
    uint64_t base, end; /* its first cell, and the one after its last */
    uint64_t per;       /* ranges of a cell */
};

static struct file_cells cells_of_part(const struct cache_shard *shard, enum cache_part part)
{
    const bool sealed = index_is_sealed(&shard->index);
    return part == CACHE_MASK ? (struct file_cells){SHARD_MASK, shard->token_cells, shard->state.count, 1}
                              : (struct file_cells){sealed ? SHARD_SEALED : SHARD_TOKENS, 0, shard->token_cells,
                                                    sealed ? CACHE_CELL / FRAME_BYTES : 1};
}

/* Finds the ranges of cells [first, end), which are of one file. */
static struct file_cells ranges_of(const struct cache_shard *shard, uint64_t *first, uint64_t *end)
{
    const struct file_cells of = cells_of_part(shard, cache_part_of(shard, *first));
    *first = (*first - of.base) * of.per;
    *end = min64((*end - of.base) * of.per, shard_ranges(&shard->index, of.file));
    return of;
}

enum tokmap_status cache_cells_place(const struct cache_shard *shard, uint64_t first, uint64_t end, uint64_t *from,
                                     uint64_t *bytes, struct tokmap_error *error)
{
    assert(first < end && end <= shard->state.count);
    assert(cache_part_of(shard, first) == cache_part_of(shard, end - 1));
    const struct file_cells of = ranges_of(shard, &first, &end);
    return shard_ranges_place(&shard->index, of.file, first, end, from, bytes, error);
}

void cache_cells_of(const struct cache_shard *shard, enum cache_part part, uint64_t at, uint64_t count, uint64_t *first,
                    uint64_t *end)
{
    const struct file_cells of = cells_of_part(shard, part);
    (void)shard_ranges_find(&shard->index, of.file, at, count, first, end, NULL);
    *first = of.base + *first / of.per;
    *end = of.base + div_ceil(*end, of.per);
}

void cache_cells_in(const struct cache_shard *shard, enum cache_part part, uint64_t at, uint64_t count, uint64_t *first,
                    uint64_t *end)
{
    const struct file_cells of = cells_of_part(shard, part);
    *first = min64(of.base + at / CACHE_CELL, of.end);
    *end = count ? min64(of.base + (at + count - 1) / CACHE_CELL + 1, of.end) : *first;
}

bool cache_cell_matches(const struct cache_shard *shard, uint64_t cell, const uint8_t *bytes,
                        struct sealed_reader **reader)
{
    assert(cell < shard->state.count);
    uint64_t end = cell + 1;
    const struct file_cells of = ranges_of(shard, &cell, &end);
    return !shard_ranges_check(&shard->index, of.file, cell, end, shard->path, bytes, reader, NULL);
}
