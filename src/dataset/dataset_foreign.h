/* SPDX-License-Identifier: MIT */
/*
 * dataset_foreign.h - datasets that are files of other projects, opened in place. FORMAT.md has the grammar of their
 * names, [KIND:]PATH[,WORD=VALUE]..., and the kinds.
 *
 * If each file has an index that `tokmap index` wrote, the dataset is opened through the indexes, like one of shards,
 * and has a full identity. Otherwise it is opened through the formats' own headers and document indexes.
 */
#ifndef TOKMAP_DATASET_DATASET_FOREIGN_H
#define TOKMAP_DATASET_DATASET_FOREIGN_H

#include "format/foreign/foreign_file.h"
#include "opened_dataset.h"
#include "shard_names.h"

/* The files that a name refers to. */
struct foreign_group {
    struct foreign_words words;
    enum foreign_kind *kinds; /* of each file; with an unnamed kind, its magic tells */
    char **paths;             /* the files with the tokens, in byte order */
    uint64_t count, capacity;
    uint64_t indexed; /* number of those that have an index with a store section */
};

/* Finds the files of a name. named: the name begins with a KIND; otherwise a name whose files have no magic is
 * NOT_FOUND, without a message. The caller frees *group with every status. Statuses: OK, ERROR_NOT_FOUND,
 * ERROR_ARGUMENT, ERROR_FORMAT, ERROR_IO, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status foreign_group_find(struct foreign_group *group, const char *name, bool named,
                                      struct tokmap_error *error);
void foreign_group_free(struct foreign_group *group);

/* Lists the indexes of all files, if each has one (group->indexed == group->count). Statuses: OK, ERROR_MEMORY. */
enum tokmap_status foreign_group_indexes(const struct foreign_group *group, struct shard_names *names,
                                         struct tokmap_error *error);

/* Returns ERROR_MISMATCH if a word of the name contradicts what the index of a file says. */
enum tokmap_status foreign_check_words(const struct foreign_group *group, const struct shard *shard,
                                       struct tokmap_error *error);

/* Opens file `number` as a shard without an index of ours. The caller frees *shard with every status. Statuses: those
 * of foreign_open(). */
enum tokmap_status foreign_shard_open(struct shard **shard, const struct foreign_group *group, uint64_t number,
                                      struct tokmap_error *error);

/* Computes the sampled identity of a dataset of such shards. Statuses: OK, ERROR_IO, ERROR_TRUNCATED, ERROR_MEMORY. */
enum tokmap_status foreign_identity(const struct tokmap_dataset *dataset, uint8_t content[16],
                                    struct tokmap_error *error);

/* Returns the file of a shard without an index of ours, or NULL. */
const struct foreign_file *foreign_of(const struct shard *shard);

/* Maps the document index of a shard that foreign_shard_open() opened, if it has one; of another shard nothing. Until
 * then it is read with pread. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status foreign_shard_map(struct shard *shard, struct tokmap_error *error);

/* Finds the ends of documents in tokens [first, last) of a shard whose documents are unknown, by its EOD or BOS: writes
 * them like shard_ends(). Reads the tokens. Statuses: OK, ERROR_IO, ERROR_TRUNCATED, ERROR_TOKEN. */
enum tokmap_status foreign_scan_ends(const struct shard *shard, uint32_t width, uint64_t first, uint64_t last,
                                     uint64_t shift, uint64_t *ends, uint64_t capacity, uint64_t *used,
                                     struct tokmap_error *error);

/* Looks for files whose tokens are read with a wrong width, offset, or byte order. Reads some tokens of a few shards,
 * which are open, and adds a sentence to the dataset's warning for the first shard whose ids no text has, and one for a
 * file of datatrove without tokens. Returns false without memory. */
bool token_doubts_add(struct tokmap_dataset *dataset);

#endif
