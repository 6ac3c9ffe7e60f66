/* SPDX-License-Identifier: MIT */
/*
 * split_sets.h - notices a dataset that has several sets of one split, such as web.train and web.val: `tokmap pack
 * --split` puts them into one folder, and a training on the folder uses what the split holds out.
 */
#ifndef TOKMAP_DATASET_SPLIT_SETS_H
#define TOKMAP_DATASET_SPLIT_SETS_H

#include "dataset_state.h"

/* The list or folder that the names of the shards come from. */
enum shard_origin {
    SHARDS_NAMED,      /* one name, or a manifest, in which somebody has written each */
    SHARDS_OF_FOLDER,  /* whatever a folder has */
    SHARDS_OF_PATTERN, /* whatever a pattern stands for */
};

enum { SPLIT_SETS_WARNING = 512 };

/* Returns ERROR_MISMATCH if a folder or a pattern has several sets of one split, by what their indexes say; the error
 * names the sets. Of a manifest that has them, *warning is a warning; otherwise it is empty. Two sets are of one split
 * if its sets have the same names, so web.train and code.val are. Statuses: OK, ERROR_MISMATCH. */
enum tokmap_status split_sets_check(const struct tokmap_dataset *dataset, enum shard_origin origin, const char *name,
                                    char warning[SPLIT_SETS_WARNING], struct tokmap_error *error);

#endif
