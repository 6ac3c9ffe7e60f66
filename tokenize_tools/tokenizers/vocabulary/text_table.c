/* SPDX-License-Identifier: MIT */
/*
 * text_table.c - entries are stored in the order in which they were added; slots refer to them by index and keep 32
 * bits of each hash, so that growing the table does not read the texts again.
 */
#include "text_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "platform/os.h"

#define SLOT_BITS 12 /* of a new table */
#define SLOT_BITS_MOST 22
_Static_assert(UINT32_C(1) << (SLOT_BITS_MOST - 1) == TEXT_TABLE_MOST,
               "half of the slots of the largest table are used");

/* Returns the bytes of a table: 2^bits slots, and behind them entries for half as many texts. One allocation for both
 * fills huge pages sooner. */
static uint64_t table_bytes(uint32_t bits)
{
    return (sizeof(uint64_t) << bits) + (sizeof(struct text_entry) << (bits - 1));
}

void text_table_free(struct text_table *table)
{
    if (table->slots)
        os_memory_free(table->slots, table_bytes(table->slot_bits));
    free(table->by_id);
    memset(table, 0, sizeof *table);
}

static inline uint64_t place_of(const struct text_table *table, uint64_t hash)
{
    return hash >> (64 - table->slot_bits);
}

/* Returns the slot that refers to a text, or the free slot where it belongs. */
static inline uint64_t *slot_of(const struct text_table *table, const uint8_t *text, uint32_t bytes, uint64_t hash)
{
    const uint64_t mask = (UINT64_C(1) << table->slot_bits) - 1;
    for (uint64_t at = place_of(table, hash);; at = (at + 1) & mask) {
        const uint64_t slot = table->slots[at];
        if (!slot)
            return &table->slots[at];
        if (slot >> 32 != hash >> 32)
            continue;
        const struct text_entry *entry = &table->entries[(uint32_t)slot - 1];
        if (entry->bytes == bytes && !memcmp(entry->text, text, bytes))
            return &table->slots[at];
    }
}

/* Gives the table 2^bits slots, and entries for half as many texts. Returns false if memory is lacking. */
static bool resize(struct text_table *table, uint32_t bits)
{
    const uint32_t room = (uint32_t)1 << (bits - 1), old_bits = table->slot_bits;
    uint64_t *old = table->slots;
    assert(bits <= SLOT_BITS_MOST && table->count <= room);
    void *slots = NULL;
    if (os_memory_new(table_bytes(bits), true, &slots))
        return false;
    struct text_entry *entries = (struct text_entry *)((uint64_t *)slots + ((size_t)1 << bits));
    if (!old)
        table->key = table_key_new();
    if (table->count)
        memcpy(entries, table->entries, table->count * sizeof *entries);
    table->entries = entries;
    table->room = room;
    table->slots = slots;
    table->slot_bits = bits;
    const uint64_t mask = (UINT64_C(1) << bits) - 1;
    for (uint64_t i = 0; old && i < UINT64_C(1) << old_bits; i++) {
        if (!old[i])
            continue;
        uint64_t at = place_of(table, old[i]);
        while (table->slots[at])
            at = (at + 1) & mask;
        table->slots[at] = old[i];
    }
    if (old)
        os_memory_free(old, table_bytes(old_bits));
    return true;
}

bool text_table_reserve(struct text_table *table, uint64_t count)
{
    uint32_t bits = SLOT_BITS;
    while (bits < SLOT_BITS_MOST && UINT64_C(1) << (bits - 1) < count)
        bits++;
    return table->slots || resize(table, bits);
}

void text_table_prefetch(const struct text_table *table, uint64_t hash)
{
    __builtin_prefetch(&table->slots[place_of(table, hash)], 1);
}

enum text_added text_table_add_hashed(struct text_table *table, const struct text_entry *text, uint64_t hash)
{
    assert(!table->indexed && table->slots);
    if (table->count == TEXT_TABLE_MOST)
        return TEXT_FULL;
    if (table->count == table->room && !resize(table, table->slot_bits + 1))
        return TEXT_NO_MEMORY;
    const uint64_t mask = (UINT64_C(1) << table->slot_bits) - 1;
    uint64_t *slot = slot_of(table, text->text, text->bytes, hash);
    table->passed += ((uint64_t)(slot - table->slots) - place_of(table, hash)) & mask;
    if (*slot)
        return TEXT_DUPLICATE;
    table->entries[table->count++] = *text;
    *slot = hash >> 32 << 32 | table->count;
    table->ids = text->id >= table->ids ? text->id + 1 : table->ids;
    return TEXT_ADDED;
}

enum text_added text_table_add(struct text_table *table, const uint8_t *text, uint32_t bytes, uint32_t id)
{
    const struct text_entry entry = {text, bytes, id};
    if (!table->slots && !resize(table, SLOT_BITS))
        return TEXT_NO_MEMORY;
    return text_table_add_hashed(table, &entry, text_table_hash(table, text, bytes));
}

uint32_t text_table_find(const struct text_table *table, const uint8_t *text, uint32_t bytes)
{
    if (!table->count)
        return TEXT_NONE;
    const uint64_t slot = *slot_of(table, text, bytes, table_hash(table->key, text, bytes));
    return slot ? table->entries[(uint32_t)slot - 1].id : TEXT_NONE;
}

void text_table_find_all(const struct text_table *table, struct text_query *queries, size_t count)
{
    if (!table->count) {
        for (size_t i = 0; i < count; i++)
            queries[i].id = TEXT_NONE;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        queries[i].hash = table_hash(table->key, queries[i].text, queries[i].bytes);
        __builtin_prefetch(&table->slots[place_of(table, queries[i].hash)]);
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t slot = table->slots[place_of(table, queries[i].hash)];
        if (slot)
            __builtin_prefetch(&table->entries[(uint32_t)slot - 1]);
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t slot = table->slots[place_of(table, queries[i].hash)];
        if (slot)
            __builtin_prefetch(table->entries[(uint32_t)slot - 1].text);
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t slot = *slot_of(table, queries[i].text, queries[i].bytes, queries[i].hash);
        queries[i].id = slot ? table->entries[(uint32_t)slot - 1].id : TEXT_NONE;
    }
}

bool text_table_index(struct text_table *table, uint32_t *duplicate)
{
    uint32_t ordered = 0;
    assert(!table->indexed);
    *duplicate = TEXT_NONE;
    while (ordered < table->count && table->entries[ordered].id == ordered)
        ordered++;
    table->indexed = ordered == table->count;
    if (table->indexed)
        return true;
    table->by_id = os_memory_large_zeros((size_t)table->ids + 1, sizeof *table->by_id);
    if (!table->by_id)
        return false;
    for (uint32_t i = 0; i < table->count; i++) {
        uint32_t *place = &table->by_id[table->entries[i].id];
        if (*place) {
            *duplicate = table->entries[i].id;
            return false;
        }
        *place = i + 1;
    }
    table->indexed = true;
    return true;
}
