/* SPDX-License-Identifier: MIT */
/*
 * shard_stems.h - notices shards of a folder whose index is missing.
 *
 * The *stem* of a file of a shard is its path without .bin, .tmx, and the like. A table of stems keeps a hash of each,
 * so a folder of a hundred thousand shards costs a few milliseconds. Zeroed, but for the key, a table is empty.
 */
#ifndef TOKMAP_DATASET_SHARD_STEMS_H
#define TOKMAP_DATASET_SHARD_STEMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/table_key.h"

/* Facts about a shard that the name of a file states. */
enum shard_role {
    SHARD_ROLE_NONE,
    SHARD_ROLE_INDEX,  /* NAME.tmx */
    SHARD_ROLE_TOKENS, /* NAME.bin, NAME.bin.zst */
    SHARD_ROLE_SIGN,   /* NAME.tmx.partial, or a saved name of the tokens: see format/shard_file.h */
};
/* *stem_bytes: the length of NAME. */
enum shard_role shard_role_of(const char *name, size_t bytes, size_t *stem_bytes);

struct shard_stems {
    struct table_key key; /* of the hashes, because names are a folder's to choose; the caller draws it */
    uint64_t *hashes;
    uint64_t count, capacity;
    uint64_t *table; /* of shard_stems_ready() */
    uint64_t slots;
    uint64_t passed; /* slots that shard_stems_ready() has passed over; few, whatever the names are */
};
/* Adds NAME in a folder. False without memory. */
bool shard_stems_add(struct shard_stems *stems, const char *folder, const char *name, size_t stem_bytes);
/* To be called between adding and asking. False without memory. */
bool shard_stems_ready(struct shard_stems *stems);
bool shard_stems_has(const struct shard_stems *stems, const char *folder, const char *name, size_t stem_bytes);
/* Returns whether each stem of `some` is in `all`, which is ready. Both have the same key. */
bool shard_stems_within(const struct shard_stems *some, const struct shard_stems *all);
void shard_stems_free(struct shard_stems *stems);

/* For an index that does not exist: if the files beside it say that a writer may be about to rename it, which takes a
 * writer of this version only for a shard that there was not before, waits up to 150 ms for it. Returns whether the
 * index is there now. */
bool shard_index_awaited(const char *index_path);

#endif
