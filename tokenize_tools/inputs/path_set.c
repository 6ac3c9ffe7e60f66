/* SPDX-License-Identifier: MIT */
/* path_set.c - see path_set.h. A table with open addressing, at most half full. */
#include "path_set.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

#define CAPACITY_FIRST ((size_t)256)

/* Copies a path without "./" at the beginning of its parts, and without repeated slashes. `into` has room for it. */
static size_t path_plain(const char *path, char *into)
{
    size_t count = 0;
    for (const char *at = path; *at; at++) {
        const char before = count ? into[count - 1] : at == path ? '/' : '\0';
        if (*at == '/' && count && before == '/')
            continue;
        if (*at == '.' && at[1] == '/' && (before == '/' || !count)) {
            at++;
            while (at[1] == '/')
                at++;
            continue;
        }
        into[count++] = *at;
    }
    return count;
}

/* Returns the slot of a hash, or the empty one where it belongs. */
static uint64_t *slot_of(uint64_t *slots, size_t capacity, uint64_t hash)
{
    size_t at = (size_t)hash & (capacity - 1);
    while (slots[at] && slots[at] != hash)
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

static bool set_grow(struct path_set *set)
{
    const size_t capacity = set->capacity ? 2 * set->capacity : CAPACITY_FIRST;
    uint64_t *slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < set->capacity; i++)
        if (set->slots[i])
            *slot_of(slots, capacity, set->slots[i]) = set->slots[i];
    free(set->slots);
    set->slots = slots;
    set->capacity = capacity;
    return true;
}

enum path_set_result path_set_add(struct path_set *set, const char *path, bool exact)
{
    char *plain = malloc(strlen(path) + 1);
    if (!plain)
        return PATH_MEMORY;
    const uint64_t found = exact ? hash64(path, strlen(path)) : hash64(plain, path_plain(path, plain));
    const uint64_t hash = found ? found : 1;
    free(plain);
    if (2 * set->count >= set->capacity && set->count < PATH_SET_MOST && !set_grow(set))
        return PATH_MEMORY;
    uint64_t *slot = slot_of(set->slots, set->capacity, hash);
    if (*slot)
        return PATH_KNOWN;
    if (set->count < PATH_SET_MOST) {
        *slot = hash;
        set->count++;
    }
    return PATH_NEW;
}

void path_set_free(struct path_set *set)
{
    free(set->slots);
    *set = (struct path_set){0};
}
