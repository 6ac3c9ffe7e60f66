/* SPDX-License-Identifier: MIT */
/*
 * token_doubts.h - looks for files of other projects whose tokens are read with a wrong width, offset, or byte order.
 */
#ifndef TOKMAP_DATASET_TOKEN_DOUBTS_H
#define TOKMAP_DATASET_TOKEN_DOUBTS_H

#include "dataset_state.h"

/* Reads some tokens of a few shards, which are open, and adds a sentence to the dataset's warning for the first shard
 * whose ids no text has, and one for a file of datatrove without tokens. Returns false without memory. */
bool token_doubts_add(struct tokmap_dataset *dataset);

#endif
