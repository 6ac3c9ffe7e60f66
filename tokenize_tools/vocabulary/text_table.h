/*
 * text_table.h - the tokens of a vocabulary by their text and by their id, while it is being loaded.
 */
#ifndef TOKMAP_VOCABULARY_TEXT_TABLE_H
#define TOKMAP_VOCABULARY_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_NONE UINT32_MAX

struct text_entry {
    const uint8_t *text; /* the owner's */
    uint32_t bytes, id;
};

/* Zeroed at first. */
struct text_table {
    struct text_entry *entries; /* in the order of adding */
    uint32_t count, room;
    uint64_t *slots; /* high half of the hash << 32 | entry + 1; 0: empty. By the highest bits of the hash */
    uint32_t slot_bits;
    uint32_t *by_id; /* entry + 1, 0 where no token is; made by text_table_index */
    uint32_t ids;    /* the largest id + 1 */
};
void text_table_free(struct text_table *table);
/* Room for about `count` texts, before the first is added: a guess that saves growing. False: no memory. */
bool text_table_reserve(struct text_table *table, uint64_t count);
/* Asks for where a text will be put, if it is not long until then. */
void text_table_expect(const struct text_table *table, const uint8_t *text, uint32_t bytes);
enum text_added { TEXT_ADDED, TEXT_TWICE, TEXT_NO_MEMORY };
enum text_added text_table_add(struct text_table *table, const uint8_t *text, uint32_t bytes, uint32_t id);
/* The id of a text, or TEXT_NONE. */
uint32_t text_table_find(const struct text_table *table, const uint8_t *text, uint32_t bytes);

/* Many at once, so that memory answers while others are asked for: their number is in each `id` then. */
struct text_query {
    const uint8_t *text;
    uint32_t bytes, id;
    uint64_t hash;
};
void text_table_find_all(const struct text_table *table, struct text_query *queries, size_t count);
/* Fills by_id. False: *twice is an id of two tokens, or TEXT_NONE if memory is lacking. */
bool text_table_index(struct text_table *table, uint32_t *twice);
const struct text_entry *text_table_by_id(const struct text_table *table, uint32_t id);

#endif
