/* SPDX-License-Identifier: MIT */
/*
 * text_places.h - finds the token that has a given text, while a vocabulary is built: a hash table of ids whose texts
 * are the caller's, one after the other, as a model keeps them.
 *
 * A table at most half full, searched from a text's place on. Texts are the file's to choose, so the hash has a key.
 */
#ifndef TOKMAP_BPE_TEXT_PLACES_H
#define TOKMAP_BPE_TEXT_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/table_key.h"

#define NO_TEXT UINT32_MAX

/* A zeroed struct has no memory and finds nothing. */
struct text_places {
    uint64_t *places; /* the high half of the hash << 32 | id + 1; 0: free */
    uint32_t bits;    /* there are 2^bits places */
    struct table_key key;
    uint64_t passed; /* places that additions have passed over, which tests compare with the number of texts */
};

/* Makes an empty table for at most `count` texts; text_places_free() frees it. Returns false if memory ran out. */
bool text_places_new(struct text_places *table, uint64_t count);
void text_places_free(struct text_places *table);

/* Adds the text of id i, bytes[offsets[i], offsets[i + 1]), unless the table has an id with the same text. Returns that
 * id, or NO_TEXT if the id was added. */
uint32_t text_places_add(struct text_places *table, const uint8_t *bytes, const uint32_t *offsets, uint32_t id);

/* Returns the id whose text is these `count` bytes, or NO_TEXT. bytes and offsets: as for text_places_add(). */
uint32_t text_places_find(const struct text_places *table, const uint8_t *bytes, const uint32_t *offsets,
                          const uint8_t *text, uint64_t count);

/* Finds the first id with the text of an earlier one, or NO_TEXT; empty texts do not count. Places are prefetched,
 * because each one is a cache line of its own. Returns false if memory ran out. */
bool text_places_duplicate(const uint8_t *bytes, const uint32_t *offsets, uint32_t count, uint32_t *duplicate);

#endif
