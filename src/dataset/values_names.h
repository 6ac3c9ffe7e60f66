/* SPDX-License-Identifier: MIT */
/* values_names.h - which values shards have, by the names in their folders, also in object storage. A folder is listed
 * once for all of its shards, if they are asked for one after another. */
#ifndef TOKMAP_DATASET_VALUES_NAMES_H
#define TOKMAP_DATASET_VALUES_NAMES_H

#include "format/values_file.h"
#include "remote/remote_client.h"

/* Begins as zeros, or with the first member. */
struct values_names {
    const struct remote_client *client; /* whose stop and watch lists in object storage have; NULL: they have none */
    char *folder;
    char **names; /* of the files of values in it, sorted */
    uint64_t count, room;
    char *prefix; /* of the shard that was asked for: "NAME." */
    uint64_t next;
};

/* Begins with the values of a shard, one of whose files is `path`. Files of web servers cannot be listed, so nothing is
 * found there. Statuses: OK, ERROR_IO, ERROR_NOT_FOUND, ERROR_MEMORY, those of remote_list_next(). */
enum tokmap_status values_names_begin(struct values_names *names, const char *path, struct tokmap_error *error);
/* Returns the name of its next values, or NULL after the last ones; valid until the next call. */
const char *values_names_next(struct values_names *names, char what[VALUES_NAME_MOST + 1]);
void values_names_free(struct values_names *names);

#endif
