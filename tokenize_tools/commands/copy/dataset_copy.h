/* SPDX-License-Identifier: MIT */
/*
 * dataset_copy.h - copies a dataset between file systems and object storage, with several threads, and compares it with
 * its hashes at both ends.
 *
 * Three steps follow each other, so that a reader finds the old dataset, the new one, or none, and never a mixture:
 *
 *     1. all parts of all files are copied, under names that no reader knows: NAME.partial, or uploads
 *     2. tokens and masks get their names; then indexes. On a file system, shard_commit.h does both for each shard
 *     3. the manifest gets its name. One that differs, and is to be replaced, is removed before step 2
 *
 * A copy that was killed in any of them continues when it is started again: copy_file.h says how. No list of what is
 * done is kept, because what is there is compared.
 */
#ifndef TOKMAP_COMMANDS_COPY_DATASET_COPY_H
#define TOKMAP_COMMANDS_COPY_DATASET_COPY_H

#include <stdbool.h>

#include "remote/remote_client.h"

#define COPY_CONNECTIONS 8u
#define COPY_CONNECTIONS_MOST 256u

/* A signal that was caught (process.h) ends the copy. */
struct dataset_copy_options {
    const char *from, *to;
    uint32_t connections; /* threads, each with its connection: 1 to COPY_CONNECTIONS_MOST */
    uint64_t part_bytes;  /* 0: the default */
    bool replace;         /* a dataset of this name is replaced */
    bool full;            /* true if what was written is read again and compared */
    /* done of total bytes, the latter an estimate until all indexes are read; by any thread, one at a time. */
    void (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
};

struct dataset_copy_result {
    uint64_t shards, values; /* shards; files of values */
    uint64_t changed;        /* of both, those that were not there */
    uint64_t bytes;          /* of all files */
    uint64_t sent, kept;     /* bytes that were written; that were there, from an earlier copy */
    bool manifest;           /* the dataset has one */
    bool unfinished;         /* after a failure: parts are kept, with which the same call continues */
};

/* Statuses: OK; ERROR_ARGUMENT (a name that cannot be copied, or not to there), ERROR_NOT_FOUND, and those of
 * copy_shard.h. */
enum tokmap_status dataset_copy(const struct dataset_copy_options *options, struct dataset_copy_result *result,
                                struct tokmap_error *error);

/* Removes the files of a dataset on a file system, the manifest and the indexes first. */
enum tokmap_status dataset_copy_remove(const char *name, struct tokmap_error *error);

#endif
