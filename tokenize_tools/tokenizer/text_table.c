#include "text_table.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t text_hash(const uint8_t *text, uint32_t bytes)
{
    uint64_t hash = bytes * UINT64_C(0x9E3779B97F4A7C15);
    for (; bytes > 8; text += 8, bytes -= 8)
        hash = mix(load64(text) ^ hash, UINT64_C(0xD6E8FEB86659FD93));
    uint64_t last = 0;
    if (bytes >= 4)
        last = load32(text) | (uint64_t)load32(text + bytes - 4) << 32;
    else if (bytes)
        last = text[0] | (uint64_t)text[bytes / 2] << 8 | (uint64_t)text[bytes - 1] << 16;
    return mix(last ^ hash, UINT64_C(0xA0761D6478BD642F));
}

void text_table_free(struct text_table *table)
{
    free(table->entries);
    free(table->slots);
    free(table->by_id);
    memset(table, 0, sizeof *table);
}

/* The slot where a text is or would be. */
static inline uint64_t *slot_of(const struct text_table *table, const uint8_t *text, uint32_t bytes, uint64_t hash)
{
    const uint64_t mask = (UINT64_C(1) << table->slot_bits) - 1;
    for (uint64_t at = hash & mask;; at = (at + 1) & mask) {
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

static bool grow(struct text_table *table)
{
    const uint32_t bits = table->slot_bits ? table->slot_bits + 1 : 12;
    const uint32_t room = (uint32_t)1 << (bits - 1);
    struct text_entry *entries = realloc(table->entries, room * sizeof *entries);
    if (entries)
        table->entries = entries;
    uint64_t *slots = entries ? calloc((size_t)1 << bits, sizeof *slots) : NULL;
    if (!slots)
        return false;
    free(table->slots);
    table->slots = slots;
    table->slot_bits = bits;
    table->room = room;
    const uint64_t mask = (UINT64_C(1) << bits) - 1;
    for (uint32_t i = 0; i < table->count; i++) {
        const uint64_t hash = text_hash(entries[i].text, entries[i].bytes);
        uint64_t at = hash & mask;
        while (slots[at])
            at = (at + 1) & mask;
        slots[at] = hash >> 32 << 32 | (i + 1);
    }
    return true;
}

enum text_added text_table_add(struct text_table *table, const uint8_t *text, uint32_t bytes, uint32_t id)
{
    if (table->count == table->room && (table->slot_bits > 24 || !grow(table)))
        return TEXT_NO_MEMORY;
    const uint64_t hash = text_hash(text, bytes);
    uint64_t *slot = slot_of(table, text, bytes, hash);
    if (*slot)
        return TEXT_TWICE;
    table->entries[table->count++] = (struct text_entry){text, bytes, id};
    *slot = hash >> 32 << 32 | table->count;
    table->ids = id >= table->ids ? id + 1 : table->ids;
    return TEXT_ADDED;
}

uint32_t text_table_find(const struct text_table *table, const uint8_t *text, uint32_t bytes)
{
    if (!table->count)
        return TEXT_NONE;
    const uint64_t slot = *slot_of(table, text, bytes, text_hash(text, bytes));
    return slot ? table->entries[(uint32_t)slot - 1].id : TEXT_NONE;
}

void text_table_find_all(const struct text_table *table, struct text_query *queries, size_t count)
{
    const uint64_t mask = (UINT64_C(1) << table->slot_bits) - 1;
    if (!table->count) {
        for (size_t i = 0; i < count; i++)
            queries[i].id = TEXT_NONE;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        queries[i].hash = text_hash(queries[i].text, queries[i].bytes);
        __builtin_prefetch(&table->slots[queries[i].hash & mask]);
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t slot = table->slots[queries[i].hash & mask];
        if (slot)
            __builtin_prefetch(&table->entries[(uint32_t)slot - 1]);
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t slot = table->slots[queries[i].hash & mask];
        if (slot)
            __builtin_prefetch(table->entries[(uint32_t)slot - 1].text);
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t slot = *slot_of(table, queries[i].text, queries[i].bytes, queries[i].hash);
        queries[i].id = slot ? table->entries[(uint32_t)slot - 1].id : TEXT_NONE;
    }
}

bool text_table_index(struct text_table *table, uint32_t *twice)
{
    *twice = TEXT_NONE;
    table->by_id = calloc((size_t)table->ids + 1, sizeof *table->by_id);
    if (!table->by_id)
        return false;
    for (uint32_t i = 0; i < table->count; i++) {
        uint32_t *place = &table->by_id[table->entries[i].id];
        if (*place) {
            *twice = table->entries[i].id;
            return false;
        }
        *place = i + 1;
    }
    return true;
}

const struct text_entry *text_table_by_id(const struct text_table *table, uint32_t id)
{
    return id < table->ids && table->by_id[id] ? &table->entries[table->by_id[id] - 1] : NULL;
}
