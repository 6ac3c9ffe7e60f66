/* SPDX-License-Identifier: MIT */
/*
 * document_key.h - what --dedup exact compares, and how documents are numbered for it.
 *
 * The key of a document is the XXH3-128 of its text in UTF-8; of ids, of the ids as numbers of 4 bytes; of the messages
 * of a conversation, of their JSON text. Of a prompt with a completion, of messages with something beside them, and of
 * ids with a mask, it is the XXH3-128 of the 32 bytes of both hashes (the low half of each first, little-endian), so
 * that the border between the two counts. Among 10^9 different documents, two have the same key with a chance of
 * 10^-21.
 */
#ifndef TOKMAP_DEDUP_DOCUMENT_KEY_H
#define TOKMAP_DEDUP_DOCUMENT_KEY_H

#include <stdbool.h>

#include "common/hash.h"
#include "corpus/corpus_batch.h"
#include "platform/table_key.h"

/*
 * A table of the documents seen so far, by their keys, with the place of each.
 *
 * The table is 256 tables, one for each value of the first bits of a hash of the key. They grow one at a time, so that
 * the old and the new copy of only 1/256 of the entries are in memory at the same time. An entry has 28 bytes, and a
 * table is 68 to 85 % full: at most 42 bytes for each key, once there are many.
 */

#define KEY_TABLES 256

/* Place of a document. Documents are ordered by (input, record). */
struct document_place {
    uint64_t record; /* its number in the file, from 0; of JSONL, lines count */
    uint32_t input;  /* number of the file, from 0, among those that have documents; below 2^32 - 1 */
};

struct key_entry;

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

struct hash128 document_key(const struct corpus_document *document);

/* Numbers the documents of all inputs in their order. Begins as zero bytes. */
struct place_counter {
    uint64_t inputs;    /* with documents, so far */
    uint64_t input;     /* of the last document, as the corpus numbers inputs */
    uint64_t documents; /* so far */
    uint64_t digest;    /* of the keys and places of all documents, in order */
};

/* Determines the place of the next document. *is_new: it is the first one of its input. Statuses: OK, ERROR_LIMIT (2^32
 * - 1 inputs). */
enum tokmap_status place_counter_next(struct place_counter *counter, const struct corpus_part *part, uint64_t record,
                                      struct hash128 key, struct document_place *place, bool *is_new,
                                      struct tokmap_error *error);

#endif
