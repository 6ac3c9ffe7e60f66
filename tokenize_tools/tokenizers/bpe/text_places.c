/* SPDX-License-Identifier: MIT */
#include "text_places.h"

#include <string.h>

#include "common/bytes.h"
#include "platform/os.h"

static uint64_t places_bytes(const struct text_places *table)
{
    return ((uint64_t)1 << table->bits) * sizeof *table->places;
}

bool text_places_new(struct text_places *table, uint64_t count)
{
    *table = (struct text_places){.bits = 1, .key = table_key_new()};
    while ((uint64_t)1 << table->bits < 2 * count)
        table->bits++;
    void *places = NULL;
    const bool made = !os_memory_new(places_bytes(table), true, &places);
    table->places = places;
    return made;
}

void text_places_free(struct text_places *table)
{
    os_memory_free(table->places, places_bytes(table));
    *table = (struct text_places){.places = NULL};
}

/* Returns the place of the id with this text, or the free place where it belongs. */
static uint64_t place_of(const struct text_places *table, const uint8_t *bytes, const uint32_t *offsets,
                         const uint8_t *text, uint64_t count, uint64_t hash)
{
    const uint64_t mask = ((uint64_t)1 << table->bits) - 1;
    uint64_t at = hash & mask;
    for (; table->places[at]; at = (at + 1) & mask) {
        const uint32_t id = (uint32_t)table->places[at] - 1;
        if (table->places[at] >> 32 == hash >> 32 && offsets[id + 1] - offsets[id] == count &&
            !memcmp(bytes + offsets[id], text, (size_t)count))
            break;
    }
    return at;
}

uint32_t text_places_add(struct text_places *table, const uint8_t *bytes, const uint32_t *offsets, uint32_t id)
{
    const uint8_t *text = bytes + offsets[id];
    const uint32_t count = offsets[id + 1] - offsets[id];
    const uint64_t hash = table_hash(table->key, text, count), mask = ((uint64_t)1 << table->bits) - 1;
    const uint64_t at = place_of(table, bytes, offsets, text, count, hash);
    table->passed += (at - hash) & mask;
    if (table->places[at])
        return (uint32_t)table->places[at] - 1;
    table->places[at] = (hash & 0xFFFFFFFF00000000u) | (id + 1);
    return NO_TEXT;
}

uint32_t text_places_find(const struct text_places *table, const uint8_t *bytes, const uint32_t *offsets,
                          const uint8_t *text, uint64_t count)
{
    if (!table->places)
        return NO_TEXT;
    const uint64_t at = place_of(table, bytes, offsets, text, count, table_hash(table->key, text, (size_t)count));
    return (uint32_t)table->places[at] - 1; /* a free place: NO_TEXT */
}

bool text_places_duplicate(const uint8_t *bytes, const uint32_t *offsets, uint32_t count, uint32_t *duplicate)
{
    enum { TOGETHER = 32 };
    struct text_places table;
    *duplicate = NO_TEXT;
    if (!text_places_new(&table, count))
        return false;
    const uint64_t mask = ((uint64_t)1 << table.bits) - 1;
    for (uint32_t from = 0; from < count && *duplicate == NO_TEXT; from += TOGETHER) {
        const uint32_t end = (uint32_t)min64(count, (uint64_t)from + TOGETHER);
        for (uint32_t id = from; id < end; id++)
            __builtin_prefetch(
                &table.places[table_hash(table.key, bytes + offsets[id], offsets[id + 1] - offsets[id]) & mask], 1);
        for (uint32_t id = from; id < end && *duplicate == NO_TEXT; id++)
            if (offsets[id + 1] > offsets[id] && text_places_add(&table, bytes, offsets, id) != NO_TEXT)
                *duplicate = id;
    }
    text_places_free(&table);
    return true;
}
