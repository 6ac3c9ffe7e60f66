/* SPDX-License-Identifier: MIT */
/*
 * text_table.h - a vocabulary while its file is being read: finds tokens by their text and, once complete, by their id.
 *
 * The table is a hash table with open addressing. It stores pointers to the texts, not copies; the texts must outlive
 * it. While texts are added, a table is used by one thread, but any thread may hash texts for it; once it is complete,
 * any thread may look texts up.
 */
#ifndef TOKMAP_VOCABULARY_TEXT_TABLE_H
#define TOKMAP_VOCABULARY_TEXT_TABLE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/table_key.h"

#define TEXT_NONE UINT32_MAX
#define TEXT_TABLE_MOST (1u << 21) /* texts that a table can hold: as many as there are ids */

struct text_entry {
    const uint8_t *text; /* owned by the caller */
    uint32_t bytes, id;
};

/* A zeroed struct is an empty table. Readers may use `entries`, `count`, `ids`, and `indexed`; the other fields are
 * private. */
struct text_table {
    struct text_entry *entries; /* in the order in which they were added; behind the slots, in their allocation */
    uint32_t count, room;
    uint64_t *slots; /* high half of the hash << 32 | index of the entry + 1, placed by the highest bits of the hash; 0:
                        free */
    uint32_t slot_bits;
    struct table_key key; /* of the hash, because texts are a file's to choose */
    uint64_t passed;      /* slots that additions have passed over, which tests compare with `count` */
    uint32_t *by_id;      /* index of the entry + 1; 0: no token has the id. NULL if the ids are 0, 1, 2, and so on in
                             the order of the entries, as in most files */
    bool indexed;         /* text_table_index has been called */
    uint32_t ids;         /* the largest id + 1; 0 if the table is empty */
};

enum text_added {
    TEXT_ADDED,
    TEXT_DUPLICATE, /* the table contains the text already */
    TEXT_FULL,      /* the table holds TEXT_TABLE_MOST texts */
    TEXT_NO_MEMORY
};

/* Frees the memory of the table and zeroes it. */
void text_table_free(struct text_table *table);
/* Allocates memory for about `count` texts, so that the table need not grow; a guess is enough. Does nothing if the
 * table has memory already. Returns false if memory is lacking. */
bool text_table_reserve(struct text_table *table, uint64_t count);
/* Adds a text with its id, unless the table contains the text. */
enum text_added text_table_add(struct text_table *table, const uint8_t *text, uint32_t bytes, uint32_t id);
/* Returns the hash of a text, for the calls below. The table has memory (text_table_reserve). Any thread may compute
 * it, also while texts are added. */
static inline uint64_t text_table_hash(const struct text_table *table, const uint8_t *text, uint32_t bytes)
{
    return table_hash(table->key, text, bytes);
}
/* Prefetches the slot of a text that will be added soon. */
void text_table_prefetch(const struct text_table *table, uint64_t hash);
/* text_table_add for a text whose hash is known. It does not read the text, unless one of equal hash is there. */
enum text_added text_table_add_hashed(struct text_table *table, const struct text_entry *text, uint64_t hash);
/* Returns the id of a text, or TEXT_NONE if the table does not contain it. */
uint32_t text_table_find(const struct text_table *table, const uint8_t *text, uint32_t bytes);

struct text_query {
    const uint8_t *text;
    uint32_t bytes, id; /* id: the result, TEXT_NONE if the table does not contain the text */
    uint64_t hash;      /* private */
};
/* Finds the ids of `count` texts. Faster than one call of text_table_find for each, because the cache misses
 * overlap. */
void text_table_find_all(const struct text_table *table, struct text_query *queries, size_t count);
/* Prepares text_table_by_id; call it once, after the last text_table_add. Returns false on failure: *duplicate is
 * then an id that two texts have, or TEXT_NONE if memory is lacking. */
bool text_table_index(struct text_table *table, uint32_t *duplicate);
/* Returns the entry with an id, or NULL if no text has it. The pointer is valid as long as the table. */
static inline const struct text_entry *text_table_by_id(const struct text_table *table, uint32_t id)
{
    assert(table->indexed || !table->ids);
    if (id >= table->ids)
        return NULL;
    if (!table->by_id)
        return &table->entries[id];
    return table->by_id[id] ? &table->entries[table->by_id[id] - 1] : NULL;
}

#endif
