/* SPDX-License-Identifier: MIT */
/* shard_names.h - finds the shards that the name of a dataset refers to; FORMAT.md has the rules. */
#ifndef TOKMAP_DATASET_SHARD_NAMES_H
#define TOKMAP_DATASET_SHARD_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/manifest.h"
#include "platform/table_key.h"

/* What the name of a file states. */
enum shard_role {
    SHARD_ROLE_NONE,
    SHARD_ROLE_INDEX,  /* NAME.tmx */
    SHARD_ROLE_TOKENS, /* NAME.bin, NAME.bin.zst */
    SHARD_ROLE_SIGN,   /* NAME.tmx.partial, or a saved name of the tokens: see format/shard_file.h */
};
/* *stem_bytes: the length of NAME. */
enum shard_role shard_role_of(const char *name, size_t bytes, size_t *stem_bytes);

/* Shards of a folder, to notice those whose index is missing. The *stem* of a file of a shard is its path without .bin,
 * .tmx, and the like. The table keeps a hash of each, so a folder of a hundred thousand shards costs a few
 * milliseconds. Zeroed, but for the key, it is empty. */
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

/* The shards that the name of a dataset refers to, in order. */
struct shard_names {
    char **index_paths; /* NULL with a manifest */
    uint64_t count, capacity;
    struct manifest manifest;    /* its path is NULL if the shards are not named by one */
    enum tokmap_reading reading; /* with which the shards are opened; shard_names_find() leaves it alone */
    struct cache *cache;         /* of names in object storage; the caller closes it. Otherwise NULL */
    bool folder_too;             /* the name is the prefix of a shard, and also a folder, which was not opened */
};

/* Fills a zeroed *names. The caller frees it with every status. A name that is the prefix of a shard costs two calls of
 * stat(). Statuses: OK, ERROR_NOT_FOUND, ERROR_MISMATCH (a folder has a NAME.bin without its index), ERROR_BUSY,
 * ERROR_IO, ERROR_FORMAT, ERROR_VERSION, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status shard_names_find(struct shard_names *names, const char *name, struct tokmap_error *error);
/* Adds the path of an index, which the names own from now on, also after a failure; NULL: there was no memory for it.
 * Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status shard_names_add(struct shard_names *names, char *path, struct tokmap_error *error);
void shard_names_free(struct shard_names *names);

/* Takes the path of the index of shard `number` from the names; the caller frees it. NULL without memory. */
char *shard_names_take(struct shard_names *names, uint64_t number);
/* Gives a path back that was taken, to be taken again. */
void shard_names_return(struct shard_names *names, uint64_t number, char *path);

/* Returns the line of the manifest that names a shard, or NULL if it was not named by one. */
const struct manifest_shard *shard_names_line(const struct shard_names *names, uint64_t number);

#endif
