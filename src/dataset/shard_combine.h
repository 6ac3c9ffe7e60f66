/* SPDX-License-Identifier: MIT */
/* shard_combine.h - makes one dataset of shards: their places in it, its identity, and in what they must agree. */
#ifndef TOKMAP_DATASET_SHARD_COMBINE_H
#define TOKMAP_DATASET_SHARD_COMBINE_H

#include "opened_dataset.h"

/* The list or folder that the names of the shards come from. */
enum shard_origin {
    SHARDS_NAMED,      /* one name, or a manifest, in which somebody has written each */
    SHARDS_OF_FOLDER,  /* whatever a folder has */
    SHARDS_OF_PATTERN, /* whatever a pattern stands for */
};

/* Adds shard `shard_count`, which is open or stated by its line, to the dataset. *known: the first shard with a known
 * tokenizer; UINT64_MAX at first. Statuses: OK, ERROR_MISMATCH, ERROR_LIMIT. */
enum tokmap_status shard_join(struct tokmap_dataset *dataset, uint64_t *known, struct tokmap_error *error);

/* Compares the shards that have joined the dataset, and computes what it has as a whole. name: of the folder or pattern
 * for errors. Statuses: OK, ERROR_MISMATCH, ERROR_MEMORY. */
enum tokmap_status shards_combine(struct tokmap_dataset *dataset, enum shard_origin origin, const char *name,
                                  struct tokmap_error *error);

/* Refuses a folder or a pattern that has several sets of one split, such as web.train and web.val, by what their
 * indexes say: `tokmap pack --split` puts them into one folder, and a training on the folder uses what the split holds
 * out. Of a manifest that has them, warns. Two sets are of one split if its sets have the same names, so web.train and
 * code.val are. Statuses: the same. */
enum tokmap_status shards_check_sets(struct tokmap_dataset *dataset, enum shard_origin origin, const char *name,
                                     struct tokmap_error *error);

/* Appends a sentence to the warning. Returns false without memory. */
bool dataset_warning_add(struct tokmap_dataset *dataset, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
