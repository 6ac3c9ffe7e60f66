/* SPDX-License-Identifier: MIT */
#include "document_key.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"

/*
 * Each table has open addressing: an entry is in the slot that its hash points to, or in
 * the next free one after it. The hash depends on a random key, so that nobody can write documents whose keys all
 * collide there; which document is kept does not depend on it.
 *
 * Example: a table with 100 slots and a key whose hash is 0.257 of 2^64 (of the lower bits, without those that choose
 * the table). The search begins at slot 25, and ends at the key or at a slot without an entry.
 */

#define SLOTS_FIRST 64
#define NO_INPUT UINT32_MAX
#define SEARCH_LINES 4 /* lines of a cache, of 64 bytes, that a search reads on average */

struct key_entry {
    uint64_t low, high, record;
    uint32_t input; /* NO_INPUT: the slot is free */
} __attribute__((packed, aligned(4)));
_Static_assert(sizeof(struct key_entry) == 28, "as document_key.h says");

static uint64_t keyed_hash(struct table_key key, struct hash128 hash)
{
    return table_mix(key, hash.low, hash.high);
}

/* Returns the slot at which the search for a hash begins: the hash without its first 8 bits, as a share of the
 * slots. */
static uint64_t slot_first(uint64_t hash, uint64_t capacity)
{
    return (uint64_t)((unsigned __int128)(hash << 8) * capacity >> 64);
}

void key_table_init(struct key_table *table, uint64_t bytes_most)
{
    memset(table, 0, sizeof *table);
    table->key = table_key_new();
    table->bytes_most = bytes_most;
}

void key_table_free(struct key_table *table)
{
    for (int i = 0; i < KEY_TABLES; i++)
        free(table->tables[i].entries);
    memset(table->tables, 0, sizeof table->tables);
    table->bytes = table->count = 0;
}

/* Returns the slot of a key, or the free slot where it belongs. */
static struct key_entry *slot_find(struct key_entry *entries, uint64_t capacity, uint64_t hash, struct hash128 key)
{
    struct key_entry *at = entries + slot_first(hash, capacity), *const end = entries + capacity;
    while (at->input != NO_INPUT && (at->low != key.low || at->high != key.high))
        at = at + 1 == end ? entries : at + 1;
    return at;
}

/* Makes one of the tables larger by a quarter. */
static enum key_found table_grow(struct key_table *table, uint32_t number)
{
    struct key_entry *old = table->tables[number].entries;
    const uint64_t before = table->tables[number].capacity;
    const uint64_t after = before ? before + before / 4 : SLOTS_FIRST, more = (after - before) * sizeof *old;
    if (more > table->bytes_most || table->bytes > table->bytes_most - more)
        return KEY_NO_ROOM;
    struct key_entry *entries = malloc((size_t)after * sizeof *entries);
    if (!entries)
        return KEY_NO_MEMORY;
    for (uint64_t i = 0; i < after; i++)
        entries[i].input = NO_INPUT;
    for (uint64_t i = 0; i < before; i++) {
        const struct hash128 key = {old[i].low, old[i].high};
        if (old[i].input != NO_INPUT)
            *slot_find(entries, after, keyed_hash(table->key, key), key) = old[i];
    }
    free(old);
    table->tables[number].entries = entries;
    table->tables[number].capacity = after;
    table->bytes += more;
    return KEY_ADDED;
}

enum key_found key_table_find(struct key_table *table, struct hash128 key, const struct document_place *place,
                              struct document_place *kept)
{
    const uint64_t hash = keyed_hash(table->key, key);
    const uint32_t number = (uint32_t)(hash >> 56);
    const uint64_t capacity = table->tables[number].capacity;
    struct key_entry *at = capacity ? slot_find(table->tables[number].entries, capacity, hash, key) : NULL;
    if (at && at->input != NO_INPUT) {
        *kept = (struct document_place){.record = at->record, .input = at->input};
        return KEY_FOUND;
    }
    if (table->tables[number].count >= capacity - capacity * 3 / 20) { /* at most 85 % are used */
        const enum key_found grown = table_grow(table, number);
        if (grown != KEY_ADDED)
            return grown;
        at = slot_find(table->tables[number].entries, table->tables[number].capacity, hash, key);
    }
    *at = (struct key_entry){.low = key.low, .high = key.high, .record = place->record, .input = place->input};
    table->tables[number].count++;
    table->count++;
    return KEY_ADDED;
}

void key_table_prefetch(const struct key_table *table, struct hash128 key)
{
    const uint64_t hash = keyed_hash(table->key, key);
    const uint32_t number = (uint32_t)(hash >> 56);
    const uint64_t capacity = table->tables[number].capacity;
    if (!capacity)
        return;
    const char *first = (const char *)(table->tables[number].entries + slot_first(hash, capacity));
    for (int line = 0; line < SEARCH_LINES; line++)
        __builtin_prefetch(first + 64 * line);
}

static struct hash128 bytes_key(const void *bytes, uint64_t count)
{
    return hash128(count ? bytes : "", (size_t)count);
}

struct hash128 document_key(const struct corpus_document *document)
{
    const struct hash128 first = document->ids ? bytes_key(document->ids, document->id_count * sizeof *document->ids)
                                               : bytes_key(document->text, document->bytes);
    if (!document->second && !document->counted)
        return first;
    const struct hash128 second = document->second ? bytes_key(document->second, document->second_bytes)
                                                   : bytes_key(document->counted, document->id_count);
    const uint64_t both[] = {first.low, first.high, second.low, second.high};
    return hash128(both, sizeof both);
}

enum tokmap_status place_counter_next(struct place_counter *counter, const struct corpus_part *part, uint64_t record,
                                      struct hash128 key, struct document_place *place, bool *is_new,
                                      struct tokmap_error *error)
{
    *is_new = !counter->documents || counter->input != part->input;
    if (*is_new && counter->inputs == UINT32_MAX - 1)
        return error_set(error, TOKMAP_ERROR_LIMIT, part->path, TOKMAP_NO_OFFSET,
                         "there are more than 2^32 inputs; pack fewer at once");
    counter->inputs += *is_new;
    counter->input = part->input;
    counter->documents++;
    *place = (struct document_place){.record = record, .input = (uint32_t)(counter->inputs - 1)};
    uint64_t digest = (counter->digest + key.low) * 0x9e3779b97f4a7c15U;
    digest ^= digest >> 29;
    counter->digest = (digest + (key.high ^ record)) * 0xbf58476d1ce4e5b9U + place->input;
    return TOKMAP_OK;
}
