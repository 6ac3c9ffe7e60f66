/* SPDX-License-Identifier: MIT */
/* made_dataset.h - a small dataset on disk, whose token i is (first + i) mod 50000 and takes two bytes. */
#ifndef TOKMAP_SUPPORT_MADE_DATASET_H
#define TOKMAP_SUPPORT_MADE_DATASET_H

#include <stdint.h>

struct made_dataset {
    char folder[512]; /* a new folder below $TMPDIR */
    char name[520];   /* the prefix FOLDER/d, for tokmap_dataset_open() */
};

/* Creates a dataset that consists of one document with `tokens` tokens. Fails the cmocka test if it cannot. */
void made_dataset_new(struct made_dataset *made, uint64_t tokens, uint64_t first);
/* Removes the dataset and its folder. */
void made_dataset_remove(struct made_dataset *made);

#endif
