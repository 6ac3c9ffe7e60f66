/* made_dataset.h - a small dataset on disk for a test: token i of it is (first + i) mod 50000, two bytes wide. */
#ifndef TOKMAP_SUPPORT_MADE_DATASET_H
#define TOKMAP_SUPPORT_MADE_DATASET_H

#include <stdint.h>

struct made_dataset {
    char folder[512]; /* a new one, below $TMPDIR */
    char name[520];   /* the prefix: folder/d */
};

/* One document of `tokens` tokens. Fails the cmocka test if it cannot be made. */
void made_dataset_new(struct made_dataset *made, uint64_t tokens, uint64_t first);
/* Removes it and its folder. */
void made_dataset_remove(struct made_dataset *made);

#endif
