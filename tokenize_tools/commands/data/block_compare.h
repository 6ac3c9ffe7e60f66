/* SPDX-License-Identifier: MIT */
/*
 * block_compare.h - compares the blocks of tokens that a command reads with the hashes in the indexes, so that a
 * damaged file is an error and never other tokens.
 *
 * A command that reads any ranges of tokens calls block_compare_range() before it uses one. The blocks that the range
 * touches are read whole and compared, each one once: a bit remembers it. The hashes of a shard, 8 bytes per MiB of
 * tokens, are loaded when the first of its tokens is used. Nothing is compared in sealed shards, whose frames are
 * compared wherever they are read, in datasets of other projects without an index, and in parts of a shard, whose
 * blocks are at other places than those of the index.
 */
#ifndef TOKMAP_COMMANDS_DATA_BLOCK_COMPARE_H
#define TOKMAP_COMMANDS_DATA_BLOCK_COMPARE_H

#include <stdint.h>

#include "tokmap/tokmap.h"

struct block_compare;

/* Opens a comparison. The dataset must stay open until block_compare_close(). Statuses: OK, ERROR_MEMORY. */
enum tokmap_status block_compare_open(struct block_compare **compare, const struct tokmap_dataset *dataset,
                                      struct tokmap_error *error);
void block_compare_close(struct block_compare *compare); /* accepts NULL */

/* Compares the blocks that tokens [first, first + count) of the dataset are in. Any thread. *room: NULL at first, then
 * memory of the calling thread, which it frees with free(). Statuses: OK, ERROR_CORRUPT, those of opening and reading a
 * dataset. */
enum tokmap_status block_compare_range(struct block_compare *compare, uint64_t first, uint64_t count, uint8_t **room,
                                       struct tokmap_error *error);

/* Returns the error of a block that does not match. */
enum tokmap_status block_compare_wrong(const char *path, uint64_t block, struct tokmap_error *error);

#endif
