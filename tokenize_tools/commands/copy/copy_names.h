/* SPDX-License-Identifier: MIT */
/*
 * copy_names.h - the shards of a dataset that is copied, each with its name here and its name there.
 *
 * A name is a path, or an address (s3://, gs://, https://), and what it stands for is what FORMAT.md says of datasets:
 *
 *     FROM is                       the copy
 *     a shard data/web              TO.tmx, or TO/web.tmx if TO is a folder or ends in a slash
 *     a folder, all shards in it    TO/ and the rest of each path
 *     a manifest data/web           TO, or TO/web; its shards are named as its lines say
 *
 * For one thread at a time.
 */
#ifndef TOKMAP_COMMANDS_COPY_COPY_NAMES_H
#define TOKMAP_COMMANDS_COPY_COPY_NAMES_H

#include "common/bytes_buffer.h"
#include "remote/remote_client.h"

struct copy_name {
    char *from, *to; /* of a shard, without the endings of its files */
};

struct copy_names {
    struct copy_name *shards; /* in byte order of `to`, each once */
    uint64_t count, capacity;
    char *manifest_from, *manifest_to; /* NULL if there is no manifest */
    struct bytes_buffer manifest;      /* its text */
};

/* Fills zeroed *names. The caller frees it with every status. client: for addresses. Statuses: OK, ERROR_ARGUMENT (a
 * part of a dataset; a name that cannot be one at the other end), ERROR_NOT_FOUND, ERROR_UNSUPPORTED (files of other
 * projects; a manifest with shards outside of its folder; TO is not written), those of manifests and of object
 * storage. */
enum tokmap_status copy_names_find(struct copy_names *names, const char *from, const char *to,
                                   struct remote_client *client, struct tokmap_error *error);
void copy_names_free(struct copy_names *names);

#endif
