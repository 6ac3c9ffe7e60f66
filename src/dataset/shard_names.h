/* shard_names.h - finds the shards that the name of a dataset refers to; FORMAT.md has the rules. */
#ifndef TOKMAP_DATASET_SHARD_NAMES_H
#define TOKMAP_DATASET_SHARD_NAMES_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

/* The shards that the name of a dataset refers to, in order. */
struct shard_names {
    char **index_paths;
    uint32_t *lines; /* the line of the manifest that names each shard; 0 without a manifest */
    uint64_t count, capacity;
    char *manifest;  /* its path, or NULL */
    bool folder_too; /* the name is the prefix of a shard, and also a folder, which was not opened */
};

/* Fills a zeroed *names. The caller frees it with every status. A name that is the prefix of a shard costs two calls of
 * stat(). Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_FORMAT, ERROR_VERSION, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status shard_names_find(struct shard_names *names, const char *name, struct tokmap_error *error);
void shard_names_free(struct shard_names *names);

#endif
