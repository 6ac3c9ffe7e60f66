/* SPDX-License-Identifier: MIT */
/*
 * dataset_fetch.c - see dataset_fetch.h.
 *
 * Numbers of cells. Cell b of the file of shard s, the first of which that holds tokens of the dataset is b0, has the
 * number floor(first_token * width / bytes of a cell) + 2 s + (b - b0): see shard_views.c for why no two share one.
 * Nothing has to be opened for that, because the dataset knows where its shards begin.
 */
#include "dataset_fetch.h"

#include "cache/cache_attach.h"
#include "cache/cache_pool.h"
#include "common/bytes.h"
#include "documents.h"
#include "open_shards.h"
#include "opened_dataset.h"

#define SHARDS_AHEAD ((uint64_t)128)

struct cache *dataset_cache(const struct tokmap_dataset *dataset)
{
    return dataset->cache;
}

struct fetch_cell dataset_fetch_cell(const struct tokmap_dataset *dataset, uint64_t bytes, uint64_t token,
                                     uint64_t *shard)
{
    const struct shard_place synthetic = {.tokens = dataset->tokens};
    const uint64_t cell = bytes / dataset->width; /* tokens of one */
    *shard = dataset->shard_count ? dataset_shard_of(dataset, token, *shard) : 0;
    const struct shard_place *place = dataset->shard_count ? &dataset->slots[*shard].place : &synthetic;
    const uint64_t at = place->skipped_tokens + (token - place->first_token);
    return (struct fetch_cell){place->first_token / cell + 2 * *shard + (at / cell - place->skipped_tokens / cell),
                               token - min64(at % cell, token - place->first_token),
                               min64(place->first_token + place->tokens, token + (cell - at % cell))};
}

uint64_t dataset_fetch_cells(const struct tokmap_dataset *dataset, uint64_t bytes)
{
    return dataset->tokens / (bytes / dataset->width) + 2 * dataset->shard_count + 1;
}

/* Returns where a token is in its shard, in bytes of the tokens, uncompressed. */
static uint64_t place_of(const struct tokmap_dataset *dataset, const struct shard *shard, uint64_t token)
{
    return (shard->place.skipped_tokens + (token - shard->place.first_token)) * dataset->width;
}

/* Returns whether the shard has a mask. The bitmap of values is in their own file, and small beside them. */
static bool has_masks(const struct tokmap_dataset *dataset, const struct shard *shard)
{
    return shard->mask.fd >= 0 && !dataset->unit;
}

/* Returns the same in its mask. */
static uint64_t mask_place_of(const struct shard *shard, uint64_t token)
{
    return (shard->place.skipped_tokens + (token - shard->place.first_token)) / 8;
}

static bool is_open(const struct tokmap_dataset *dataset, uint64_t number)
{
    return !shard_line(dataset, number) || __atomic_load_n(&dataset->slots[number].holders, __ATOMIC_RELAXED);
}

bool dataset_fetch_is_open(const struct tokmap_dataset *dataset, uint64_t token, uint64_t count)
{
    uint64_t number = dataset_shard_of(dataset, token % dataset->tokens, 0);
    for (uint64_t end = token % dataset->tokens + count;; number = (number + 1) % dataset->shard_count) {
        const struct shard_place *place = &dataset->slots[number].place;
        if (!is_open(dataset, number))
            return false;
        if (end <= place->first_token + place->tokens)
            return true;
        if (place->first_token + place->tokens == dataset->tokens)
            end -= dataset->tokens;
    }
}

/* Returns a shard that is open, held; otherwise NULL. */
static const struct shard *hold_if_open(const struct tokmap_dataset *dataset, uint64_t number)
{
    const struct shard *shard = NULL;
    if (!is_open(dataset, number))
        return NULL;
    return shard_hold(dataset, number, &shard, NULL) ? NULL : shard;
}

void dataset_fetch_shard(const struct tokmap_dataset *dataset, uint64_t shard, uint64_t *first, uint64_t *end)
{
    const struct shard_place *place = &dataset->slots[shard].place;
    *first = place->first_token;
    *end = place->first_token + place->tokens;
}

uint64_t dataset_fetch_plan(const struct tokmap_dataset *dataset, uint64_t number, uint64_t token, uint64_t when)
{
    const struct shard *shard = hold_if_open(dataset, number);
    if (!shard)
        return 0;
    const uint64_t opening = shard->number + 1;
    cache_plan(shard->store.fd, place_of(dataset, shard, token), 1, when);
    if (has_masks(dataset, shard) && when != UINT64_MAX) /* other cells of tokens may still need that of the mask */
        cache_plan(shard->mask.fd, mask_place_of(shard, token), 1, when);
    shard_release(dataset, number);
    return opening;
}

/* Opens the shard with a token, and fetches its cell. */
static void open_and_fetch(void *user, uint64_t token)
{
    const struct tokmap_dataset *dataset = user;
    const uint64_t number = dataset_shard_of(dataset, token, 0);
    const struct shard *shard;
    if (shard_hold(dataset, number, &shard, NULL))
        return; /* the row that needs it reports why */
    if (has_masks(dataset, shard))
        cache_fetch_now(shard->mask.fd, mask_place_of(shard, token), 1);
    cache_fetch_now(shard->store.fd, place_of(dataset, shard, token), 1);
    shard_release(dataset, number);
}

enum fetch_asked dataset_fetch_ask(const struct tokmap_dataset *dataset, uint64_t number, uint64_t token, uint64_t when)
{
    const struct shard *shard = hold_if_open(dataset, number);
    bool absent = false;
    if (!shard)
        return cache_ask_work(dataset->cache, open_and_fetch, (void *)(uintptr_t)dataset, token) ? FETCH_ASKED
                                                                                                 : FETCH_BUSY;
    const bool asked =
        (!has_masks(dataset, shard) || cache_ask(shard->mask.fd, mask_place_of(shard, token), 1, when, &absent)) &&
        cache_ask(shard->store.fd, place_of(dataset, shard, token), 1, when, &absent);
    shard_release(dataset, number);
    return !asked ? FETCH_BUSY : absent ? FETCH_ASKED : FETCH_THERE;
}

static void open_only(void *user, uint64_t number)
{
    const struct shard *shard;
    if (!shard_hold(user, number, &shard, NULL))
        shard_release(user, number);
}

void dataset_fetch_shards(const struct tokmap_dataset *dataset, uint64_t number)
{
    uint64_t first = number - number % SHARDS_AHEAD;
    const uint64_t end = min64(first + SHARDS_AHEAD, dataset->shard_count);
    if (dataset->cache && end - first > 1 && !is_open(dataset, number))
        for (; first < end; first++)
            if (!is_open(dataset, first) &&
                !cache_ask_work(dataset->cache, open_only, (void *)(uintptr_t)dataset, first))
                return;
}
