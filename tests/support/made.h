/* SPDX-License-Identifier: MIT */
/*
 * made.h - datasets for tests, with shards of any sizes. The value of each token is a function of its place, so a test
 * can check tokens that were gathered from anywhere. Documents have pseudo-random lengths, and some are empty.
 *
 * If something fails, these functions print a message and abort the program.
 */
#ifndef TESTS_SUPPORT_MADE_H
#define TESTS_SUPPORT_MADE_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

struct made {
    char name[600];   /* for tokmap_dataset_open(): the path of a manifest */
    char bin[8][640]; /* paths of the first eight shards' tokens */
    uint32_t width;
    uint64_t vocabulary;
    uint64_t tokens;
    uint64_t shards;
    uint8_t *starts; /* one byte per token: 1 if a document starts there */
    uint8_t *mask;   /* one byte per token: 1 if it counts as a target. NULL: the shards have no masks */
};

/* Writes shards with sizes[0], sizes[1], ... tokens of `width` (2 or 4) bytes to FOLDER/NAME-0.bin and so on, and the
 * manifest FOLDER/NAME.list. made_free() releases the memory but does not remove the files. */
void made_new(struct made *made, const char *folder, const char *name, uint32_t width, uint64_t vocabulary,
              const uint64_t *sizes, uint64_t shards);
/* Does the same for shards with masks, but for every third one, which has none. */
void made_new_masked(struct made *made, const char *folder, const char *name, uint32_t width, uint64_t vocabulary,
                     const uint64_t *sizes, uint64_t shards);
void made_free(struct made *made);

/* Takes the hashes of pages out of the index of a shard (below 8), as if an older tokmap had written it, so that a test
 * of another check can change tokens. */
void made_drop_pages(const struct made *made, uint64_t shard);

/* Returns the value of token i. */
uint32_t made_token(const struct made *made, uint64_t i);
/* Returns whether a row has the `count` tokens of the dataset from `first` on, continuing at token 0 after the last
 * one. */
bool made_row_is(const struct made *made, const void *row, uint64_t first, uint64_t count);

#endif
