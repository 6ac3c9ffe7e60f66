/* SPDX-License-Identifier: MIT */
/*
 * shard_merge.h - the third stage of a shuffle by tasks: merges what the sorted units (sorted_units.h) have of one
 * shard, from where the cut (shuffle_cut.h) says it begins up to where the next one begins.
 *
 *     shard-000007.work/shard-000007-00000.bin.ready    the shard, and its other files
 *     shard-000007.work/journal                        until then, how far it is (shard_merge.c)
 *     shard-000007.partial                             the lock of the process that writes it
 *     merged-000007                                    a stage file (stage_file.h): the shard is finished
 *
 * Shards are numbered over all sets: those of the first set, then those of the second, and so on.
 *
 * Memory: that of the shuffle, but at least 4 KiB for each chunk with records of the shard. Few files are open.
 */
#ifndef TOKMAP_SHUFFLE_SHARD_MERGE_H
#define TOKMAP_SHUFFLE_SHARD_MERGE_H

#include "shuffle_cut.h"

/* Figures of a finished shard, as in its file. */
struct merged_shard {
    uint64_t set, shard; /* shard: of the set */
    uint64_t documents, tokens, sealed_bytes;
    uint8_t content[16];
};

/* Returns the file of shard `number` of all sets. */
struct stage_id merged_shard_id(const char *folder, uint64_t key, uint64_t number);

struct shard_merge_options {
    struct sorted_units *units;
    const struct shuffle_cuts *cuts;
    struct stage_id cut;               /* the file of the cuts */
    struct shard_writer_options shard; /* options of its writer */
    uint64_t shard_tokens;
    uint64_t record_limit;  /* bytes of a record of the inputs */
    uint64_t memory;        /* 0: SHUFFLE_CHUNK_BYTES */
    uint64_t checkpoint_ns; /* 0: nothing is saved */
    /* Makes the about section of a shard of a set, as in shard_set.h. */
    char *(*about)(const void *owner, uint32_t set, const struct shard_totals *shard, uint64_t *bytes);
    const void *owner;
    /* Called often: true ends the work with ERROR_INTERRUPTED. May be NULL. */
    bool (*stop)(void *user);
    void *stop_user;
    /* Reports how many tokens of the shard are written. May be NULL. */
    void (*progress)(void *user, uint64_t tokens, uint64_t all);
    void *user;
};

/* Returns how many shards all sets have. */
uint64_t shard_merge_count(const struct shuffle_cuts *cuts);
/* About how many tokens each of them has. */
uint64_t shard_merge_tokens(const struct shuffle_cuts *cuts);

/* Makes shard id->number. Statuses: OK, ERROR_CORRUPT, ERROR_IO, ERROR_BUSY, ERROR_MEMORY, ERROR_INTERRUPTED, those of
 * shard_set_add() and stage_writer_commit(). */
enum tokmap_status shard_merge_run(const struct shard_merge_options *options, const struct stage_id *id,
                                   struct tokmap_error *error);

/* Reads what a finished shard has. Statuses: those of stage_section_load(). */
enum tokmap_status merged_shard_read(struct merged_shard *shard, const struct stage_id *id, struct tokmap_error *error);

#endif
