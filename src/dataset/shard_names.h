/* SPDX-License-Identifier: MIT */
/* shard_names.h - finds the shards that the name of a dataset refers to; FORMAT.md has the rules. */
#ifndef TOKMAP_DATASET_SHARD_NAMES_H
#define TOKMAP_DATASET_SHARD_NAMES_H

#include <stdbool.h>

#include "format/manifest.h"
#include "tokmap/tokmap.h"

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
