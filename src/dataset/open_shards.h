/* SPDX-License-Identifier: MIT */
/*
 * open_shards.h - the shards of datasets that are open: who holds them, and which are closed again.
 *
 * A shard whose line in a manifest states its sizes (manifest.h) is opened when somebody holds it for the first time.
 * It must then match its line. Other shards are open from the beginning and stay so. Any thread may call these
 * functions.
 *
 * The process keeps as many of the former open as half of its files (ulimit -n) and half of its mappings
 * (vm.max_map_count) allow. Then those close that are not held and were not used for long.
 */
#ifndef TOKMAP_DATASET_OPEN_SHARDS_H
#define TOKMAP_DATASET_OPEN_SHARDS_H

#include "opened_dataset.h"
#include "shard_names.h"

/* ---- opening: an index, and the tokens and the mask that belong to it ---- */

/* Opens the shard of an index, whose path, which may be NULL without memory, belongs to the shard from now on. cache:
 * NULL, or the path is a name in object storage, and this brings it. line: of the manifest that names the shard, or
 * NULL. The caller frees *shard with every status; it may be NULL. Statuses: those of index_open(), store_open(),
 * mask_file_open(), and cache_shard_find(), and ERROR_BUSY. */
enum tokmap_status shard_open(struct shard **shard, char *index_path, enum tokmap_reading reading, struct cache *cache,
                              const struct manifest_shard *line, struct tokmap_error *error);

/* Opens shards, as many as there are names, with several threads if there are many, but not those whose lines state
 * their sizes. It reports nothing: a shard that is still NULL has not been opened, because it, or another, failed. */
void shards_open_ahead(struct shard_slot *slots, struct shard_names *names);

/* Closes a shard that is open, or that could not be opened completely, and frees it. NULL is allowed. */
void dataset_shard_free(struct shard *shard);

/* ---- holding ---- */

/* Opens a shard if it is not open, and holds it until shard_release(): *shard is valid and its files and mappings stay
 * as they are. Statuses: OK, ERROR_MISMATCH (it does not match its line), those of opening a dataset. */
enum tokmap_status shard_hold(const struct tokmap_dataset *dataset, uint64_t number, const struct shard **shard,
                              struct tokmap_error *error);
void shard_release(const struct tokmap_dataset *dataset, uint64_t number);

/* Does the same, and the shard stays open until the dataset is closed: for memory of it that callers keep. */
enum tokmap_status shard_keep(const struct tokmap_dataset *dataset, uint64_t number, const struct shard **shard,
                              struct tokmap_error *error);

/* Opens the index of a shard for memory of it that callers keep until the dataset is closed. The shard's other files
 * are not kept open. */
enum tokmap_status shard_index_keep(const struct tokmap_dataset *dataset, uint64_t number, const struct index **index,
                                    struct tokmap_error *error);

/* Returns a shard that the caller holds, or that is kept. */
static inline const struct shard *shard_held(const struct tokmap_dataset *dataset, uint64_t number)
{
    return dataset->slots[number].open;
}

/* Returns a shard if it is kept or open from the beginning, else NULL. */
static inline const struct shard *shard_if_kept(const struct tokmap_dataset *dataset, uint64_t number)
{
    const struct shard_slot *slot = &dataset->slots[number];
    return __atomic_load_n(&slot->kept, __ATOMIC_ACQUIRE) ? slot->open : NULL;
}

/* Returns the line of a shard that is opened when it is needed, or NULL. */
static inline const struct manifest_shard *shard_line(const struct tokmap_dataset *dataset, uint64_t number)
{
    const struct manifest_shard *line =
        dataset->manifest.group_count ? &dataset->manifest.shards[dataset->slots[number].line] : NULL;
    return line && line->group != MANIFEST_UNSTATED ? line : NULL;
}

/* Returns true if the same line "# shards:" states the properties of a shard and of the one before it. */
static inline bool shard_continues(const struct tokmap_dataset *dataset, uint64_t number)
{
    const struct manifest_shard *line = number ? shard_line(dataset, number) : NULL;
    const struct manifest_shard *before = line ? shard_line(dataset, number - 1) : NULL;
    return before && before->group == line->group;
}

/* Returns the next shard after `number` that does not have its properties by the same line. The dataset is whole. */
static inline uint64_t shard_next_unlike(const struct tokmap_dataset *dataset, uint64_t number)
{
    const struct manifest *manifest = &dataset->manifest;
    if (manifest_states_all(manifest)) {
        const uint32_t group = manifest->shards[number].group + 1;
        return group < manifest->group_count ? manifest->groups[group].first : manifest->count;
    }
    do
        number++;
    while (number < dataset->shard_count && shard_continues(dataset, number));
    return number;
}

/* Closes all shards of a dataset that were opened when they were needed. No other thread may use the dataset. */
void shards_close(struct tokmap_dataset *dataset);

/* Returns how many shards one user may hold at the same time, so that others can, too. */
uint32_t shards_held_most(void);

#endif
