/* SPDX-License-Identifier: MIT */
#include "path_table.h"

#define SLOTS_LEAST 16

struct path_slot {
    uint64_t at, bytes; /* of the path in table->paths */
    uint64_t number;    /* plus 1; 0: the slot is free */
};

/* Returns the slot of the path, or the free one where it belongs. */
static struct path_slot *slot_of(const struct path_table *table, const void *path, uint64_t bytes)
{
    uint64_t i = table_hash(table->key, path, bytes);
    for (;; i++) {
        struct path_slot *slot = &table->slots[i & (table->capacity - 1)];
        if (!slot->number ||
            (slot->bytes == bytes && (!bytes || !memcmp(table->paths.bytes + slot->at, path, (size_t)bytes))))
            return slot;
    }
}

/* Doubles the table. */
static bool table_grow(struct path_table *table)
{
    struct path_table grown = *table;
    grown.capacity = table->capacity ? 2 * table->capacity : SLOTS_LEAST;
    if (!table->capacity)
        grown.key = table_key_new();
    grown.slots = grown.capacity < SIZE_MAX / sizeof *grown.slots ? calloc(grown.capacity, sizeof *grown.slots) : NULL;
    if (!grown.slots)
        return false;
    for (uint64_t i = 0; i < table->capacity; i++) {
        const struct path_slot *slot = &table->slots[i];
        if (slot->number)
            *slot_of(&grown, grown.paths.bytes ? grown.paths.bytes + slot->at : (const uint8_t *)"", slot->bytes) =
                *slot;
    }
    free(table->slots);
    *table = grown;
    return true;
}

bool path_table_find(struct path_table *table, const char *path, uint64_t bytes, uint64_t *number, bool *found)
{
    if (2 * (table->count + 1) > table->capacity && !table_grow(table))
        return false;
    struct path_slot *slot = slot_of(table, path, bytes);
    *found = slot->number != 0;
    if (!*found) {
        const uint64_t at = table->paths.count;
        if (bytes > SIZE_MAX / 2 || !bytes_append(&table->paths, path, (size_t)bytes))
            return false;
        *slot = (struct path_slot){at, bytes, ++table->count};
    }
    *number = slot->number - 1;
    return true;
}

void path_table_free(struct path_table *table)
{
    free(table->slots);
    bytes_free(&table->paths);
    *table = (struct path_table){.slots = NULL};
}
