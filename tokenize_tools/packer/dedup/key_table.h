/* SPDX-License-Identifier: MIT */
/*
 * key_table.h - a table of the documents seen so far, by their keys, with the place of each.
 *
 * The table is 256 tables, one for each value of the first bits of a hash of the key. They grow one at a time, so that
 * the old and the new copy of only 1/256 of the entries are in memory at the same time. An entry has 28 bytes, and a
 * table is 68 to 85 % full: at most 42 bytes for each key, once there are many.
 */
#ifndef TOKMAP_DEDUP_KEY_TABLE_H
#define TOKMAP_DEDUP_KEY_TABLE_H

#include "common/hash.h"
#include "platform/table_key.h"
#include "tokmap/tokmap.h"

#define KEY_TABLES 256

/* Place of a document. Documents are ordered by (input, record). */
struct document_place {
    uint64_t record; /* its number in the file, from 0; of JSONL, lines count */
    uint32_t input;  /* number of the file, from 0, among those that have documents; below 2^32 - 1 */
};

struct key_entry; /* of key_table.c */

struct key_table {
    struct table_key key;
    uint64_t bytes_most; /* of all entries; UINT64_MAX: no limit */
    uint64_t bytes;
    uint64_t count;
    struct {
        struct key_entry *entries;
        uint64_t capacity, count;
    } tables[KEY_TABLES];
};

/* Begins an empty table, with a key of its own (table_key.h). */
void key_table_init(struct key_table *table, uint64_t bytes_most);
void key_table_free(struct key_table *table); /* an empty table, which can be used again */

enum key_found { KEY_FOUND, KEY_ADDED, KEY_NO_ROOM, KEY_NO_MEMORY };

/* Finds the key of a document at *place. FOUND: a document with this key was added before, and *kept is its place.
 * ADDED: none was, and this one is now in the table. NO_ROOM: none was, and the table may not grow any more to take it;
 * the same key gets this answer from now on. */
enum key_found key_table_find(struct key_table *table, struct hash128 key, const struct document_place *place,
                              struct document_place *kept);

/* Brings the key's entry into the processor's caches. */
void key_table_prefetch(const struct key_table *table, struct hash128 key);

#endif
