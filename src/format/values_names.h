/* SPDX-License-Identifier: MIT */
/* values_names.h - which values shards have, by the names in their folders. A folder is listed once for all of its
 * shards, if they are asked for one after another. */
#ifndef TOKMAP_FORMAT_VALUES_NAMES_H
#define TOKMAP_FORMAT_VALUES_NAMES_H

#include "values_file.h"

/* Begins as zeros. */
struct values_names {
    char *folder;
    char **names; /* of the files of values in it, sorted */
    uint64_t count, room;
    char *prefix; /* of the shard that was asked for: "NAME." */
    uint64_t next;
};

/* Begins with the values of a shard. Statuses: OK, ERROR_IO, ERROR_NOT_FOUND, ERROR_MEMORY. */
enum tokmap_status values_names_begin(struct values_names *names, const char *index_path, struct tokmap_error *error);
/* Returns the name of its next values, or NULL after the last ones; valid until the next call. */
const char *values_names_next(struct values_names *names, char what[VALUES_NAME_MOST + 1]);
void values_names_free(struct values_names *names);

#endif
