/* SPDX-License-Identifier: MIT */
/*
 * dataset_fetch.c - see dataset_fetch.h.
 *
 * Numbers of blocks. Block b of the file of shard s, the first of which that holds tokens of the dataset is b0, has the
 * number floor(first_token * width / block) + 2 s + (b - b0): see shard_views.c for why no two share one. Nothing has
 * to be opened for that, because the dataset knows where its shards begin.
 */
#include "dataset_fetch.h"

#include "common/bytes.h"
#include "dataset_state.h"
#include "documents.h"
#include "open_shards.h"

#define SHARDS_AHEAD ((uint64_t)128)

bool dataset_is_remote(const struct tokmap_dataset *dataset)
{
    return dataset->cache != NULL;
}

uint64_t dataset_fetch_block(const struct tokmap_dataset *dataset, uint64_t token, uint64_t *shard, uint64_t *end)
{
    const uint64_t block = cache_block(dataset->cache) / dataset->width; /* tokens of one */
    *shard = dataset_shard_of(dataset, token, *shard);
    const struct shard_place *place = &dataset->slots[*shard].place;
    const uint64_t at = place->skipped_tokens + (token - place->first_token);
    *end = min64(place->first_token + place->tokens, token + (block - at % block));
    return place->first_token / block + 2 * *shard + (at / block - place->skipped_tokens / block);
}

uint64_t dataset_fetch_blocks(const struct tokmap_dataset *dataset)
{
    return dataset->tokens / (cache_block(dataset->cache) / dataset->width) + 2 * dataset->shard_count + 1;
}

/* The block with a token, in bytes of its shard's tokens, uncompressed, and of its mask. */
struct fetched_block {
    uint64_t at, bytes;
};

static struct fetched_block block_of(const struct tokmap_dataset *dataset, const struct shard *shard, uint64_t token)
{
    const uint64_t size = cache_block(dataset->cache);
    const uint64_t at = (shard->place.skipped_tokens + (token - shard->place.first_token)) * dataset->width;
    return (struct fetched_block){at - at % size, size};
}

/* Returns a shard that is open, held; otherwise NULL. */
static const struct shard *hold_if_open(const struct tokmap_dataset *dataset, uint64_t number)
{
    const struct shard *shard = NULL;
    if (shard_line(dataset, number) && !__atomic_load_n(&dataset->slots[number].holders, __ATOMIC_RELAXED))
        return NULL;
    return shard_hold(dataset, number, &shard, NULL) ? NULL : shard;
}

void dataset_fetch_plan(const struct tokmap_dataset *dataset, uint64_t number, uint64_t token, uint64_t when)
{
    const struct shard *shard = hold_if_open(dataset, number);
    if (!shard)
        return;
    const struct fetched_block block = block_of(dataset, shard, token);
    cache_plan(shard->store.fd, block.at, block.bytes, when);
    if (shard->mask.fd >= 0)
        cache_plan(shard->mask.fd, block.at / dataset->width / 8, block.bytes / dataset->width / 8, when);
    shard_release(dataset, number);
}

static bool ask_open(const struct tokmap_dataset *dataset, const struct shard *shard, uint64_t token, uint64_t when,
                     bool *absent)
{
    const struct fetched_block block = block_of(dataset, shard, token);
    return (shard->mask.fd < 0 ||
            cache_ask(shard->mask.fd, block.at / dataset->width / 8, block.bytes / dataset->width / 8, when, absent)) &&
           cache_ask(shard->store.fd, block.at, block.bytes, when, absent);
}

/* Opens the shard with a token, and fetches its block. */
static void open_and_fetch(void *user, uint64_t token)
{
    const struct tokmap_dataset *dataset = user;
    const uint64_t number = dataset_shard_of(dataset, token, 0);
    const struct shard *shard;
    if (shard_hold(dataset, number, &shard, NULL))
        return; /* the row that needs it reports why */
    const struct fetched_block block = block_of(dataset, shard, token);
    if (shard->mask.fd >= 0)
        cache_fetch_now(shard->mask.fd, block.at / dataset->width / 8, block.bytes / dataset->width / 8);
    cache_fetch_now(shard->store.fd, block.at, block.bytes);
    shard_release(dataset, number);
}

enum fetch_asked dataset_fetch_ask(const struct tokmap_dataset *dataset, uint64_t number, uint64_t token, uint64_t when)
{
    const struct shard *shard = hold_if_open(dataset, number);
    bool absent = false;
    if (!shard)
        return cache_ask_work(dataset->cache, open_and_fetch, (void *)(uintptr_t)dataset, token) ? FETCH_ASKED
                                                                                                 : FETCH_BUSY;
    const bool asked = ask_open(dataset, shard, token, when, &absent);
    shard_release(dataset, number);
    return !asked ? FETCH_BUSY : absent ? FETCH_ASKED : FETCH_THERE;
}

static void open_only(void *user, uint64_t number)
{
    const struct shard *shard;
    if (!shard_hold(user, number, &shard, NULL))
        shard_release(user, number);
}

void dataset_fetch_shards(const struct tokmap_dataset *dataset, uint64_t first)
{
    const uint64_t end = min64(first + SHARDS_AHEAD, dataset->shard_count);
    if (dataset->cache && first % SHARDS_AHEAD == 0 && end - first > 1)
        for (; first < end; first++)
            if (shard_line(dataset, first) && !__atomic_load_n(&dataset->slots[first].holders, __ATOMIC_RELAXED) &&
                !cache_ask_work(dataset->cache, open_only, (void *)(uintptr_t)dataset, first))
                return;
}

void dataset_fetch_now(const struct tokmap_dataset *dataset, uint64_t row)
{
    cache_now(dataset->cache, row);
}

void dataset_fetch_count(const struct tokmap_dataset *dataset, struct cache_counts *counts)
{
    cache_count(dataset->cache, counts);
}
