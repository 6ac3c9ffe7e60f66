/*
 * made.h - datasets made for tests: every token's value is a function of its place, so whatever is gathered from
 * anywhere can be checked; documents of pseudo-random lengths, empty ones among them; shards of any sizes.
 */
#ifndef TESTS_SUPPORT_MADE_H
#define TESTS_SUPPORT_MADE_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

struct made {
    char name[600];      /* what tokmap_dataset_open() takes: a manifest, or a prefix for a single shard */
    char bin[8][640];    /* the first shards' tokens */
    uint32_t width;
    uint64_t vocabulary;
    uint64_t tokens;
    uint64_t shards;
    uint8_t *starts;     /* one for each token: 1 if a document starts there */
};

/* Writes shards of sizes[0 .. shards) tokens to folder/name-0.bin .. */
void made_new(struct made *made, const char *folder, const char *name, uint32_t width, uint64_t vocabulary,
              const uint64_t *sizes, uint64_t shards);
void made_free(struct made *made);

/* The value of token i. */
uint32_t made_token(const struct made *made, uint64_t i);
/* Whether a row of `count` tokens, taken modulo the dataset from `first`, is what the dataset holds. */
bool made_row_is(const struct made *made, const void *row, uint64_t first, uint64_t count);

#endif
