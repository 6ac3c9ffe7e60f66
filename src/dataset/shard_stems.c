/* SPDX-License-Identifier: MIT */
/* shard_stems.c - see shard_stems.h. */
#include "shard_stems.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "format/shard_file.h"
#include "platform/os.h"

#define APPEAR_TRIES 75 /* pauses until a missing index has appeared: 150 ms */
#define APPEAR_PAUSE_NS 2000000

enum shard_role shard_role_of(const char *name, size_t bytes, size_t *stem_bytes)
{
    struct shard_name found;
    if (!shard_file_find(name, bytes, &found))
        return SHARD_ROLE_NONE;
    *stem_bytes = found.stem;
    if (found.file == SHARD_INDEX)
        return found.state == SHARD_FINAL     ? SHARD_ROLE_INDEX
               : found.state == SHARD_PARTIAL ? SHARD_ROLE_SIGN
                                              : SHARD_ROLE_NONE;
    if (found.file != SHARD_TOKENS && found.file != SHARD_SEALED)
        return SHARD_ROLE_NONE;
    return found.state == SHARD_FINAL      ? SHARD_ROLE_TOKENS
           : found.state == SHARD_REPLACED ? SHARD_ROLE_SIGN
                                           : SHARD_ROLE_NONE;
}

/* 0 marks an empty slot. */
static uint64_t hash_of(const struct shard_stems *stems, const char *folder, const char *name, size_t stem_bytes)
{
    const uint64_t of_folder = table_hash(stems->key, (const uint8_t *)folder, strlen(folder));
    const uint64_t hash = table_mix(stems->key, of_folder, table_hash(stems->key, (const uint8_t *)name, stem_bytes));
    return hash ? hash : 1;
}

bool shard_stems_add(struct shard_stems *stems, const char *folder, const char *name, size_t stem_bytes)
{
    if (!list_room(&stems->hashes, stems->count, &stems->capacity, sizeof *stems->hashes))
        return false;
    stems->hashes[stems->count++] = hash_of(stems, folder, name, stem_bytes);
    return true;
}

static uint64_t slot_of(const struct shard_stems *stems, uint64_t hash)
{
    uint64_t slot = hash & (stems->slots - 1);
    while (stems->table[slot] && stems->table[slot] != hash)
        slot = (slot + 1) & (stems->slots - 1);
    return slot;
}

bool shard_stems_ready(struct shard_stems *stems)
{
    stems->slots = 16;
    stems->passed = 0;
    while (stems->slots < 2 * stems->count)
        stems->slots *= 2;
    free(stems->table);
    stems->table = calloc(stems->slots, sizeof *stems->table);
    for (uint64_t i = 0; stems->table && i < stems->count; i++) {
        const uint64_t slot = slot_of(stems, stems->hashes[i]);
        stems->passed += (slot - stems->hashes[i]) & (stems->slots - 1);
        stems->table[slot] = stems->hashes[i];
    }
    return stems->table != NULL;
}

bool shard_stems_has(const struct shard_stems *stems, const char *folder, const char *name, size_t stem_bytes)
{
    assert(stems->table);
    return stems->table[slot_of(stems, hash_of(stems, folder, name, stem_bytes))] != 0;
}

bool shard_stems_within(const struct shard_stems *some, const struct shard_stems *all)
{
    assert(all->table);
    for (uint64_t i = 0; i < some->count; i++)
        if (!all->table[slot_of(all, some->hashes[i])])
            return false;
    return true;
}

void shard_stems_free(struct shard_stems *stems)
{
    free(stems->hashes);
    free(stems->table);
    memset(stems, 0, sizeof *stems);
}

/* Returns whether an index that is missing may appear: a writer that replaces the shard removes first an index that
 * cannot be read. */
static bool may_appear(const char *index_path)
{
    struct os_stat found;
    char *partial = shard_file_beside(index_path, SHARD_INDEX, SHARD_PARTIAL);
    const bool may = partial && !os_stat(partial, &found);
    free(partial);
    return may;
}

bool shard_index_awaited(const char *index_path)
{
    struct os_stat found;
    char *tokens = shard_file_beside(index_path, SHARD_TOKENS, SHARD_FINAL);
    bool there = false;
    if (tokens && !os_stat(tokens, &found) && found.kind == OS_KIND_FILE)
        for (int try = 0; try < APPEAR_TRIES && !there && may_appear(index_path); try++) {
            os_sleep_ns(APPEAR_PAUSE_NS);
            there = !os_stat(index_path, &found) && found.kind != OS_KIND_FOLDER;
        }
    free(tokens);
    return there;
}
