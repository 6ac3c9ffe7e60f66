/* SPDX-License-Identifier: MIT */
/* known_paths.c - see known_paths.h. A table with open addressing, at most half full. */
#include "known_paths.h"

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

static bool set_grow(struct known_paths *known)
{
    const size_t capacity = known->capacity ? 2 * known->capacity : CAPACITY_FIRST;
    uint64_t *slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < known->capacity; i++)
        if (known->slots[i])
            *slot_of(slots, capacity, known->slots[i]) = known->slots[i];
    free(known->slots);
    known->slots = slots;
    known->capacity = capacity;
    return true;
}

enum known_paths_result known_paths_add(struct known_paths *known, const char *path, bool exact)
{
    char *plain = malloc(strlen(path) + 1);
    if (!plain)
        return PATH_MEMORY;
    const uint64_t found = exact ? hash64(path, strlen(path)) : hash64(plain, path_plain(path, plain));
    const uint64_t hash = found ? found : 1;
    free(plain);
    if (2 * known->count >= known->capacity && known->count < KNOWN_PATHS_MOST && !set_grow(known))
        return PATH_MEMORY;
    uint64_t *slot = slot_of(known->slots, known->capacity, hash);
    if (*slot)
        return PATH_KNOWN;
    if (known->count < KNOWN_PATHS_MOST) {
        *slot = hash;
        known->count++;
    }
    return PATH_NEW;
}

void known_paths_free(struct known_paths *known)
{
    free(known->slots);
    *known = (struct known_paths){0};
}
