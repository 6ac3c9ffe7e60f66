/* SPDX-License-Identifier: MIT */
/*
 * row_blocks.h - which blocks of storage a row is read from, for sources that are read from remote storage in blocks:
 * arithmetic over the sizes of shards, without opening one.
 *
 * A shard's tokens are cut into blocks of `block_bytes` bytes from its first token on; the last one is shorter. Blocks
 * are numbered over all sources of the run, source by source and shard by shard, those of a part by its whole shards up
 * to the part's end. So an extent has consecutive blocks, unless it passes the dataset's last token. A token of a
 * sealed shard counts with its uncompressed bytes. Any number of threads may use the numbers.
 */
#ifndef TOKMAP_RUN_ROW_BLOCKS_H
#define TOKMAP_RUN_ROW_BLOCKS_H

#include "dataset/row_extents.h"
#include "tokmap/tokmap.h"

struct row_blocks_source {
    const struct tokmap_dataset *dataset;
    uint32_t width;     /* bytes of a token */
    uint64_t first;     /* number of its first block */
    uint64_t *of_shard; /* number of each shard's first block; NULL: the dataset is synthetic, and counts as a shard */
};

struct row_blocks {
    uint64_t block_bytes;
    uint64_t count; /* of all blocks */
    uint64_t bytes; /* of all tokens */
    uint64_t sources;
    struct row_blocks_source *source;
};

/* Blocks [first, end). */
struct block_range {
    uint64_t first, end;
};

/* Numbers the blocks of a run, which must outlive them. block_bytes: at least 1. Free it with row_blocks_free(), after
 * a failure too. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status row_blocks_init(struct row_blocks *blocks, const struct tokmap_run *run, uint64_t block_bytes,
                                   struct tokmap_error *error);
void row_blocks_free(struct row_blocks *blocks);

/* Finds the blocks of an extent of a source, which is not padding, in the order in which they are read. Returns 1, or 2
 * if the extent passes the dataset's last token. */
unsigned row_blocks_of(const struct row_blocks *blocks, uint64_t source, const struct tokmap_extent *extent,
                       struct block_range ranges[2]);

/* Returns the bytes of a block. */
uint64_t row_blocks_bytes(const struct row_blocks *blocks, uint64_t number);

#endif
