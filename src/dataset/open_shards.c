/* SPDX-License-Identifier: MIT */
/*
 * open_shards.c - see open_shards.h.
 *
 * A slot counts its holders, and the shard itself counts as one more. So a thread that holds an open shard only adds 1
 * to a number that is not 0, and a thread that closes a shard only changes a 1 into a 0. Neither needs a lock, and they
 * cannot both succeed. All else is in a table of the process, below a lock that is never held while a file is opened or
 * closed, and that a child after fork() finds unlocked.
 *
 * Which shard is closed is found like a page by the clock algorithm: a hand goes around the table, skips the shards
 * that are held, clears the mark of those that were used since it came by, and stops at the first without a mark. That
 * is about the one that was used least recently, and using a shard costs the setting of a mark instead of a move in a
 * list.
 */
#include "open_shards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "platform/os.h"
#include "shard_open.h"

enum { FILES_PER_SHARD = 3, FILES_IN_CACHE = 6, MAPPINGS_PER_SHARD = 2, CLOSED_AT_ONCE = 64, HELD_MOST = 64 };

struct entry {
    const struct tokmap_dataset *dataset;
    struct shard_slot *slot;
};

/* Protected by os_process_lock(). */
static struct table {
    struct entry *entries;
    uint64_t count, capacity, hand;
    uint64_t files, mappings; /* that the entries have at most */
    uint64_t opened;
} table;

static uint64_t mappings_of(const struct tokmap_dataset *dataset)
{
    return (dataset->cache != NULL) + (dataset->reading == TOKMAP_READ_PREAD ? 0 : MAPPINGS_PER_SHARD);
}

static uint64_t files_of(const struct tokmap_dataset *dataset)
{
    return dataset->cache ? FILES_IN_CACHE : FILES_PER_SHARD;
}

uint32_t shards_held_most(void)
{
    return (uint32_t)max64(1, min64(os_files_limit() / 8 / FILES_PER_SHARD, HELD_MOST));
}

/* ---- closing ---- */

/* Takes an entry out of the table. The lock is held. */
static void entry_remove(uint64_t number)
{
    table.files -= files_of(table.entries[number].dataset);
    table.mappings -= mappings_of(table.entries[number].dataset);
    table.entries[number] = table.entries[--table.count];
}

/* Takes up to CLOSED_AT_ONCE shards that nobody holds out of the table, as long as its files and mappings are more than
 * these. The lock is held. */
static uint32_t shards_take(struct shard *closed[CLOSED_AT_ONCE], uint64_t files, uint64_t mappings)
{
    const bool all = !files;
    uint32_t count = 0;
    uint64_t steps = 2 * table.count;
    while (steps-- && table.count && count < CLOSED_AT_ONCE && (table.files > files || table.mappings > mappings)) {
        table.hand = table.hand < table.count ? table.hand : 0;
        struct shard_slot *slot = table.entries[table.hand].slot;
        uint32_t alone = 1;
        if (!all && __atomic_exchange_n(&slot->used, false, __ATOMIC_RELAXED)) {
            table.hand++;
        } else if (__atomic_compare_exchange_n(&slot->holders, &alone, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            closed[count++] = slot->open;
            slot->open = NULL;
            entry_remove(table.hand);
        } else {
            table.hand++;
        }
    }
    return count;
}

/* Closes shards, so that another one can be opened. all: every one that nobody holds. Returns whether some were
 * closed. */
static bool room_make(bool all)
{
    struct shard *closed[CLOSED_AT_ONCE];
    const uint64_t files = all ? 0 : max64(os_files_limit() / 2, 2 * FILES_PER_SHARD) - FILES_PER_SHARD;
    const uint64_t mappings = all ? 0 : max64(os_mappings_limit() / 2, 2 * MAPPINGS_PER_SHARD) - MAPPINGS_PER_SHARD;
    uint32_t count;
    bool some = false;
    do {
        os_process_lock();
        count = shards_take(closed, files, mappings);
        os_process_unlock();
        for (uint32_t i = 0; i < count; i++)
            dataset_shard_free(closed[i]);
        some = some || count;
    } while (count == CLOSED_AT_ONCE);
    return some;
}

/* Closes an index of shard_index_keep(), or what there is of it. */
static void index_drop(struct index *index, char *path)
{
    if (index)
        index_close(index);
    free(index);
    free(path);
}

void shards_close(struct tokmap_dataset *dataset)
{
    struct shard *closed[CLOSED_AT_ONCE];
    uint64_t count = CLOSED_AT_ONCE;
    for (uint64_t i = 0; i < dataset->shard_count; i++)
        if (dataset->slots[i].index)
            index_drop(dataset->slots[i].index, (char *)(uintptr_t)dataset->slots[i].index->path);
    while (dataset->manifest.group_count && count == CLOSED_AT_ONCE) {
        count = 0;
        os_process_lock();
        for (uint64_t i = table.count; i-- && count < CLOSED_AT_ONCE;) {
            struct shard_slot *slot = table.entries[i].slot;
            if (table.entries[i].dataset != dataset)
                continue;
            closed[count++] = slot->open;
            slot->open = NULL;
            slot->holders = slot->kept = 0;
            entry_remove(i);
        }
        if (!table.count) { /* no dataset with such shards is open */
            free(table.entries);
            table.entries = NULL;
            table.capacity = 0;
        }
        os_process_unlock();
        for (uint64_t i = 0; i < count; i++)
            dataset_shard_free(closed[i]);
    }
}

/* ---- opening ---- */

static enum tokmap_status line_open(const struct tokmap_dataset *dataset, uint64_t number, struct shard **made,
                                    struct tokmap_error *error)
{
    const struct manifest *manifest = &dataset->manifest;
    const struct manifest_shard *line = shard_line(dataset, number);
    enum tokmap_status status;
    for (bool again = false;; again = true) {
        status = shard_open(made, manifest_index_path(manifest, line), dataset->reading, dataset->cache,
                            again ? NULL : line, error);
        if (status == TOKMAP_ERROR_NOT_FOUND)
            status = error_set_line(error, status, manifest->path, line->line,
                                    "the shard %s or its .bin does not exist; correct the line or restore the files",
                                    (*made)->index_path);
        if (!status)
            status = manifest_compare(manifest, line, &(*made)->index, error);
        if (status != TOKMAP_ERROR_MISMATCH || again || !dataset->cache)
            break;
        dataset_shard_free(*made); /* the cache may have the index that was there before, with another mask */
    }
    if (status) {
        dataset_shard_free(*made);
        *made = NULL;
        return status;
    }
    (*made)->place = dataset->slots[number].place;
    return TOKMAP_OK;
}

/* Adds a shard to the table, and holds it; or holds the one that another thread has opened meanwhile, and returns the
 * shard, which is not needed. Sets *full without memory for the table. */
static struct shard *shard_add(const struct tokmap_dataset *dataset, struct shard_slot *slot, struct shard *made,
                               bool *full)
{
    struct shard *rest = made;
    os_process_lock();
    if (__atomic_load_n(&slot->holders, __ATOMIC_RELAXED)) { /* only those who have the lock change a 0 */
        __atomic_add_fetch(&slot->holders, 1, __ATOMIC_ACQUIRE);
    } else {
        *full = !list_room(&table.entries, table.count, &table.capacity, sizeof *table.entries);
        if (!*full) {
            table.entries[table.count++] = (struct entry){dataset, slot};
            table.files += files_of(dataset);
            table.mappings += mappings_of(dataset);
            made->number = ++table.opened;
            slot->open = made;
            __atomic_store_n(&slot->used, true, __ATOMIC_RELAXED);
            __atomic_store_n(&slot->holders, 2, __ATOMIC_RELEASE);
            rest = NULL;
        }
    }
    os_process_unlock();
    return rest;
}

static enum tokmap_status shard_open_held(const struct tokmap_dataset *dataset, uint64_t number,
                                          struct tokmap_error *error)
{
    struct tokmap_error reason = {0};
    struct shard *made;
    bool full = false;
    (void)room_make(false);
    enum tokmap_status status = line_open(dataset, number, &made, &reason);
    const bool many = reason.system == EMFILE || reason.system == ENFILE || reason.system == ENOMEM;
    if (status && many && room_make(true)) /* the rest of the process uses more than half of what there is */
        status = line_open(dataset, number, &made, &reason);
    if (status) {
        if (error)
            *error = reason;
        return status;
    }
    dataset_shard_free(shard_add(dataset, &dataset->slots[number], made, &full));
    return full ? error_set_memory(error, "the table of open shards", 0) : TOKMAP_OK;
}

/* Holds a shard that is open. Returns false if it is not. */
static bool hold_open(struct shard_slot *slot)
{
    uint32_t holders = __atomic_load_n(&slot->holders, __ATOMIC_RELAXED);
    while (holders)
        if (__atomic_compare_exchange_n(&slot->holders, &holders, holders + 1, true, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            if (!__atomic_load_n(&slot->used, __ATOMIC_RELAXED))
                __atomic_store_n(&slot->used, true, __ATOMIC_RELAXED);
            return true;
        }
    return false;
}

enum tokmap_status shard_hold(const struct tokmap_dataset *dataset, uint64_t number, const struct shard **shard,
                              struct tokmap_error *error)
{
    struct shard_slot *slot = &dataset->slots[number];
    if (shard_line(dataset, number) && !hold_open(slot)) {
        const enum tokmap_status status = shard_open_held(dataset, number, error);
        if (status)
            return status;
    }
    *shard = slot->open;
    return TOKMAP_OK;
}

void shard_release(const struct tokmap_dataset *dataset, uint64_t number)
{
    if (shard_line(dataset, number))
        __atomic_sub_fetch(&dataset->slots[number].holders, 1, __ATOMIC_RELEASE);
}

enum tokmap_status shard_keep(const struct tokmap_dataset *dataset, uint64_t number, const struct shard **shard,
                              struct tokmap_error *error)
{
    *shard = shard_if_kept(dataset, number);
    if (*shard)
        return TOKMAP_OK;
    const enum tokmap_status status = shard_hold(dataset, number, shard, error);
    if (!status && __atomic_exchange_n(&dataset->slots[number].kept, true, __ATOMIC_ACQ_REL))
        shard_release(dataset, number); /* another thread keeps it */
    return status;
}

enum tokmap_status shard_index_keep(const struct tokmap_dataset *dataset, uint64_t number, const struct index **index,
                                    struct tokmap_error *error)
{
    struct shard_slot *slot = &dataset->slots[number];
    const struct shard *shard = shard_if_kept(dataset, number);
    struct index *before = NULL;
    *index = shard ? &shard->index : __atomic_load_n(&slot->index, __ATOMIC_ACQUIRE);
    enum tokmap_status status = *index ? TOKMAP_OK : shard_hold(dataset, number, &shard, error);
    if (status || *index)
        return status;
    struct index *made = calloc(1, sizeof *made);
    char *path = strdup(shard->index.path);
    status = made && path ? index_open_as(made, path, dataset->reading, error)
                          : error_set_memory(error, "an index", sizeof *made);
    if (!status && made->id != shard->index.id)
        status = error_set(error, TOKMAP_ERROR_MISMATCH, shard->index.path, TOKMAP_NO_OFFSET,
                           "the shard was replaced while it was used; open the dataset again");
    shard_release(dataset, number);
    const bool used =
        !status && __atomic_compare_exchange_n(&slot->index, &before, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    *index = used ? made : before; /* another thread was faster */
    if (!used)
        index_drop(made, path);
    return status;
}
