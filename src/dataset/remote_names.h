/* SPDX-License-Identifier: MIT */
/* remote_names.h - finds the shards that a name in object storage, or a URL, refers to. */
#ifndef TOKMAP_DATASET_REMOTE_NAMES_H
#define TOKMAP_DATASET_REMOTE_NAMES_H

#include "shard_names.h"

/* Does what shard_names_find() does, and opens names->cache. A web server lists nothing, so a name there is a shard or
 * a manifest. Statuses: also those of cache_open(), cache_text(), and remote_list_next(). */
enum tokmap_status remote_names_find(struct shard_names *names, const char *name, struct tokmap_error *error);

#endif
