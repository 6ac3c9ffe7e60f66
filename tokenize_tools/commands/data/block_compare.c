/* SPDX-License-Identifier: MIT */
#include "block_compare.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "commands/options/target.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "format/index_reader.h"
#include "format/index_verify.h"
#include "format/layout.h"
#include "format/shard_file.h"
#include "platform/os.h"

struct shard_hashes {
    bool loaded;
    uint64_t *hashes;   /* NULL: nothing is compared */
    uint64_t *compared; /* a bit per block, accessed atomically */
};

struct block_compare {
    const struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info;
    struct os_mutex *mutex; /* guards the loading of hashes */
    struct shard_hashes *shards;
};

enum tokmap_status block_compare_wrong(const char *path, uint64_t block, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, path, block * BLOCK_BYTES,
                     "block %" PRIu64 " of the tokens does not match its hash; restore the file, and run `tokmap "
                     "verify` to find all damage",
                     block);
}

enum tokmap_status block_compare_open(struct block_compare **compare, const struct tokmap_dataset *dataset,
                                      struct tokmap_error *error)
{
    struct block_compare *made = calloc(1, sizeof *made);
    *compare = NULL;
    if (!made)
        return error_set_memory(error, "hashes of blocks", sizeof *made);
    made->dataset = dataset;
    made->info = info_of_dataset(dataset);
    made->shards = calloc(max64(made->info.shards, 1), sizeof *made->shards);
    if (!made->shards || os_mutex_new(&made->mutex)) {
        block_compare_close(made);
        return error_set_memory(error, "hashes of blocks", made->info.shards * sizeof *made->shards);
    }
    *compare = made;
    return TOKMAP_OK;
}

void block_compare_close(struct block_compare *compare)
{
    if (!compare)
        return;
    for (uint64_t i = 0; i < compare->info.shards && compare->shards; i++) {
        free(compare->shards[i].hashes);
        free(compare->shards[i].compared);
    }
    free(compare->shards);
    os_mutex_free(compare->mutex);
    free(compare);
}

static enum tokmap_status hashes_copy(struct shard_hashes *hashes, const struct index *index,
                                      struct tokmap_error *error)
{
    const uint64_t blocks = index_blocks(index);
    const enum tokmap_status status = index_blocks_check(index, 0, blocks, error);
    if (status)
        return status;
    uint64_t *list = malloc(max64(blocks, 1) * sizeof *list);
    hashes->compared = calloc(blocks / 64 + 1, sizeof *hashes->compared);
    if (!list || !hashes->compared) {
        free(list);
        free(hashes->compared);
        hashes->compared = NULL;
        return error_set_memory(error, "hashes of blocks", blocks * sizeof *list);
    }
    for (uint64_t i = 0; i < blocks; i++)
        list[i] = index_block_hash(index, i);
    hashes->hashes = list;
    return TOKMAP_OK;
}

/* Loads the hashes of a shard, if it has an index whose blocks are those of the dataset. The mutex is held. */
static enum tokmap_status hashes_load(struct shard_hashes *hashes, const struct tokmap_shard_info *shard,
                                      struct tokmap_error *error)
{
    const char *path = shard->index_path;
    if (!path || !shard_file_is(path, SHARD_INDEX))
        return TOKMAP_OK;
    struct index *index = calloc(1, sizeof *index);
    if (!index)
        return error_set_memory(error, "an index", sizeof *index);
    enum tokmap_status status = index_open_as(index, path, TOKMAP_READ_PREAD, error);
    if (!status) {
        const bool same = !memcmp(index->shard.content, shard->content, 16) && index->shard.tokens == shard->tokens;
        if (same && !index_is_sealed(index))
            status = hashes_copy(hashes, index, error);
        index_close(index);
    }
    free(index);
    return status;
}

/* Compares blocks [block, end) of a shard. */
static enum tokmap_status blocks_compare(struct block_compare *compare, struct shard_hashes *hashes,
                                         const struct tokmap_shard_info *shard, uint64_t block, uint64_t end,
                                         uint8_t **room, struct tokmap_error *error)
{
    const uint64_t step = BLOCK_BYTES / compare->info.width;
    for (; block < end; block++) {
        uint64_t *word = &hashes->compared[block / 64];
        const uint64_t bit = (uint64_t)1 << block % 64, count = min64(step, shard->tokens - block * step);
        if (__atomic_load_n(word, __ATOMIC_ACQUIRE) & bit)
            continue;
        if (!*room && !(*room = malloc(BLOCK_BYTES)))
            return error_set_memory(error, "a block of tokens", BLOCK_BYTES);
        const enum tokmap_status status =
            tokmap_dataset_copy(compare->dataset, shard->first_token + block * step, count, *room, error);
        if (status)
            return status;
        if (hash64(*room, (size_t)(count * compare->info.width)) != hashes->hashes[block])
            return block_compare_wrong(shard->tokens_path, block, error);
        (void)__atomic_fetch_or(word, bit, __ATOMIC_RELEASE);
    }
    return TOKMAP_OK;
}

/* Finds the number of the shard that has a token, which is below the dataset's tokens. */
static enum tokmap_status shard_find(const struct block_compare *compare, uint64_t token, uint64_t *number,
                                     struct tokmap_shard_info *shard, struct tokmap_error *error)
{
    uint64_t low = 0, high = compare->info.shards;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        *shard = (struct tokmap_shard_info){.size = sizeof *shard};
        const enum tokmap_status status = tokmap_dataset_shard(compare->dataset, middle, shard, error);
        if (status)
            return status;
        if (shard->first_token <= token)
            low = middle;
        else
            high = middle;
    }
    *number = low;
    *shard = (struct tokmap_shard_info){.size = sizeof *shard};
    return tokmap_dataset_shard(compare->dataset, low, shard, error);
}

enum tokmap_status block_compare_range(struct block_compare *compare, uint64_t first, uint64_t count, uint8_t **room,
                                       struct tokmap_error *error)
{
    const uint64_t last = first + count, step = BLOCK_BYTES / (compare->info.width ? compare->info.width : 1);
    uint64_t number = 0;
    struct tokmap_shard_info shard;
    if (!count || !compare->info.shards)
        return TOKMAP_OK;
    enum tokmap_status status = shard_find(compare, first, &number, &shard, error);
    while (!status && shard.first_token < last) {
        struct shard_hashes *hashes = &compare->shards[number];
        os_mutex_lock(compare->mutex);
        if (!hashes->loaded)
            status = hashes_load(hashes, &shard, error);
        hashes->loaded = !status;
        os_mutex_unlock(compare->mutex);
        if (!status && hashes->hashes && shard.tokens) {
            const uint64_t from = max64(first, shard.first_token) - shard.first_token;
            const uint64_t to = min64(last - shard.first_token, shard.tokens);
            if (from < to)
                status = blocks_compare(compare, hashes, &shard, from / step, (to + step - 1) / step, room, error);
        }
        if (status || ++number == compare->info.shards)
            break;
        shard = (struct tokmap_shard_info){.size = sizeof shard};
        status = tokmap_dataset_shard(compare->dataset, number, &shard, error);
    }
    return status;
}
