/* SPDX-License-Identifier: MIT */
/* row_blocks.c - see row_blocks.h. */
#include "row_blocks.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"
#include "dataset/dataset_state.h"
#include "dataset/documents.h"
#include "run_state.h"

/* Returns the bytes of a shard from its first token to the end of the part that the dataset has. */
static uint64_t shard_bytes(const struct tokmap_dataset *dataset, uint64_t shard)
{
    const struct shard_place *place = &dataset->slots[shard].place;
    return (place->skipped_tokens + place->tokens) * dataset->width;
}

enum tokmap_status row_blocks_init(struct row_blocks *blocks, const struct tokmap_run *run, uint64_t block_bytes,
                                   struct tokmap_error *error)
{
    assert(block_bytes);
    *blocks = (struct row_blocks){.block_bytes = block_bytes, .sources = run->sources.count};
    blocks->source = calloc(blocks->sources, sizeof *blocks->source);
    if (!blocks->source)
        return error_set_memory(error, "the blocks of the sources", blocks->sources * sizeof *blocks->source);
    for (uint64_t i = 0; i < blocks->sources; i++) {
        struct row_blocks_source *source = &blocks->source[i];
        const struct tokmap_dataset *dataset = source->dataset = run->sources.of[i].dataset;
        source->first = blocks->count;
        source->width = dataset->width;
        blocks->bytes += dataset->tokens * dataset->width;
        if (!dataset->shard_count) {
            blocks->count += div_ceil(dataset->tokens * dataset->width, block_bytes);
            continue;
        }
        source->of_shard = calloc(dataset->shard_count, sizeof *source->of_shard);
        if (!source->of_shard)
            return error_set_memory(error, "the blocks of the shards", dataset->shard_count * 8);
        for (uint64_t k = 0; k < dataset->shard_count; k++) {
            source->of_shard[k] = blocks->count;
            blocks->count += div_ceil(shard_bytes(dataset, k), block_bytes);
        }
    }
    return TOKMAP_OK;
}

void row_blocks_free(struct row_blocks *blocks)
{
    for (uint64_t i = 0; blocks->source && i < blocks->sources; i++)
        free(blocks->source[i].of_shard);
    free(blocks->source);
    *blocks = (struct row_blocks){0};
}

static uint64_t block_of(const struct row_blocks *blocks, const struct row_blocks_source *source, uint64_t token)
{
    const struct tokmap_dataset *dataset = source->dataset;
    if (!source->of_shard)
        return source->first + token * dataset->width / blocks->block_bytes;
    const uint64_t shard = dataset_shard_of(dataset, token, 0);
    const struct shard_place *place = &dataset->slots[shard].place;
    const uint64_t in_shard = place->skipped_tokens + (token - place->first_token);
    return source->of_shard[shard] + in_shard * dataset->width / blocks->block_bytes;
}

unsigned row_blocks_of(const struct row_blocks *blocks, uint64_t source, const struct tokmap_extent *extent,
                       struct block_range ranges[2])
{
    const struct row_blocks_source *from = &blocks->source[source];
    const uint64_t end = from->dataset->tokens, first = extent->first_token;
    const uint64_t straight = min64(extent->tokens, end - first);
    ranges[0].first = block_of(blocks, from, first);
    ranges[0].end = block_of(blocks, from, first + straight - 1) + 1;
    if (straight == extent->tokens)
        return 1;
    ranges[1].first = block_of(blocks, from, 0);
    ranges[1].end = block_of(blocks, from, extent->tokens - straight - 1) + 1;
    return 2;
}

uint64_t row_blocks_bytes(const struct row_blocks *blocks, uint64_t number)
{
    uint64_t low = 0, high = blocks->sources; /* the source is in [low, high) */
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        *(blocks->source[middle].first <= number ? &low : &high) = middle;
    }
    const struct row_blocks_source *source = &blocks->source[low];
    const struct tokmap_dataset *dataset = source->dataset;
    if (!source->of_shard)
        return min64(blocks->block_bytes,
                     dataset->tokens * dataset->width - (number - source->first) * blocks->block_bytes);
    for (low = 0, high = dataset->shard_count; high - low > 1;) {
        const uint64_t middle = low + (high - low) / 2;
        *(source->of_shard[middle] <= number ? &low : &high) = middle;
    }
    return min64(blocks->block_bytes,
                 shard_bytes(dataset, low) - (number - source->of_shard[low]) * blocks->block_bytes);
}
