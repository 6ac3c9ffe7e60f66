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

#include "cache/cache_attach.h"
#include "cache/cache_folder.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "remote/remote_url.h"

/*
 * A writer replaces a shard as format/shard_commit.h says: NAME.tmx is there at every moment, while NAME.bin and
 * NAME.mask may have a name with the index's id for a moment, or, if the writer was killed, until the next writer
 * comes. Example: the index that was open()ed is O, and the writer is at one of these places when the tokens are
 * opened.
 *
 *     before step 2   NAME.bin is there, and belongs to O
 *     2 to 4          NAME.bin is missing. NAME.bin.O is there
 *     after 4         whatever is there, NAME.tmx is not O any more: begin again with N
 *
 * Opening a shard is seven system calls, which take a few microseconds if the file system has everything in memory and
 * much longer if it does not. So threads open the shards of a dataset that has many, each taking the next few. If one
 * fails, all stop, and the caller opens the rest in order, so the error that it reports does not depend on the threads.
 */

#define SHARDS_AT_ONCE ((uint64_t)16)
#define SHARDS_PER_THREAD ((uint64_t)128) /* at least, for a thread to be started */
#define THREADS_MOST ((uint64_t)8)

/* Opens the mask that belongs to the open index, if there is one. */
static enum tokmap_status open_mask(struct shard *shard, struct tokmap_error *error)
{
    if (!shard->index.mask_bytes)
        return TOKMAP_OK;
    char *path = shard_file_beside(shard->index_path, SHARD_MASK, SHARD_FINAL);
    if (!path)
        return error_set_memory(error, "the path of a mask", strlen(shard->index_path));
    const enum tokmap_status status = mask_file_open(&shard->mask, path, false, shard->index.shard.tokens, error);
    char *saved = status == TOKMAP_ERROR_NOT_FOUND ? shard_file_replaced(path, shard->index.id) : NULL;
    if (!saved)
        return status;
    struct mask_file found;
    struct tokmap_error reason = {0};
    const enum tokmap_status other = mask_file_open(&found, saved, false, shard->index.shard.tokens, &reason);
    if (other == TOKMAP_ERROR_NOT_FOUND) {
        mask_file_close(&found);
        return status;
    }
    if (other && error)
        *error = reason;
    mask_file_close(&shard->mask);
    shard->mask = found;
    return other;
}

/* Opens the file of another project that the store section of the open index names. */
static enum tokmap_status open_stored(struct shard *shard, struct tokmap_error *error)
{
    const struct index *index = &shard->index;
    shard->store = (struct store){
        .path = index_store_path(index),
        .fd = -1,
        .element = (enum element)index->store_head.element,
        .offset = index->store_head.offset,
        .tokens = index->shard.tokens,
        .bytes = index->store_head.file_bytes,
    };
    if (!shard->store.path)
        return error_set_memory(error, "the path of a file of tokens", index->store_head.path_bytes);
    return store_open(&shard->store, error);
}

/* Opens the .bin, or the .bin.zst, that belongs to the open index. */
static enum tokmap_status open_tokens(struct shard *shard, struct tokmap_error *error)
{
    const struct index *index = &shard->index;
    if (index->store.offset)
        return open_stored(shard, error);
    const bool sealed = index_is_sealed(index);
    shard->store = (struct store){
        .path = shard_file_beside(shard->index_path, sealed ? SHARD_SEALED : SHARD_TOKENS, SHARD_FINAL),
        .fd = -1,
        .element = element_of_width(index->shard.width),
        .tokens = index->shard.tokens,
        .bytes = sealed ? index->sealed_bytes : index->token_bytes,
        .sealed = sealed ? index : NULL,
    };
    if (!shard->store.path)
        return error_set_memory(error, "the path of a shard", strlen(shard->index_path));
    const enum tokmap_status status = store_open(&shard->store, error);
    struct store found = shard->store;
    found.path = status == TOKMAP_ERROR_NOT_FOUND ? shard_file_replaced(shard->store.path, shard->index.id) : NULL;
    if (!found.path)
        return status;
    struct tokmap_error reason = {0};
    const enum tokmap_status other = store_open(&found, &reason);
    if (other == TOKMAP_ERROR_NOT_FOUND) {
        store_close(&found);
        return status;
    }
    if (other && error)
        *error = reason;
    store_close(&shard->store);
    shard->store = found;
    return other;
}

/* Opens an index and the tokens and the mask that belong to it. If the name of the index still refers to the index that
 * we opened, and hold open, once the tokens are open, they belong together. */
static enum tokmap_status open_pair(struct shard *shard, enum tokmap_reading reading, struct tokmap_error *error)
{
    enum { TRIES = 100, MISSING_TRIES = 8 };
    for (int try = 0, missing = 0;; try++) {
        int fd;
        enum tokmap_status status = index_open_held(&shard->index, shard->index_path, reading, &fd, error);
        if (status == TOKMAP_ERROR_NOT_FOUND && try < MISSING_TRIES && shard_index_awaited(shard->index_path))
            continue;
        if (status)
            return status;
        status = open_tokens(shard, error);
        if (!status)
            status = open_mask(shard, error);
        struct os_stat now;
        int system = os_stat(shard->index_path, &now);
        os_close(fd);
        const bool same = !system && now.inode == shard->index.inode && now.device == shard->index.device;
        /* A file that has neither of its names may have been renamed after we looked for the first one, which happens
         * twice to the files of one index at most. */
        missing = same ? missing + 1 : 0;
        if (same && (status != TOKMAP_ERROR_NOT_FOUND || missing > MISSING_TRIES))
            return status;
        if (system && system != ENOENT)
            return error_set_system(error, system, shard->index_path, TOKMAP_NO_OFFSET, "the index cannot be examined");
        if (try == TRIES)
            return error_set(
                error, TOKMAP_ERROR_BUSY, shard->index_path, TOKMAP_NO_OFFSET,
                "the shard is replaced again and again while it is being opened; open it when its writer has finished");
        store_close(&shard->store);
        mask_file_close(&shard->mask);
        index_close(&shard->index);
    }
}

/* Puts the cache before a descriptor, whose messages then name the object. */
static enum tokmap_status attach(struct cache_shard *cached, enum cache_part part, int fd, char **path,
                                 struct tokmap_error *error)
{
    char *name;
    const enum tokmap_status status = fd < 0 ? TOKMAP_OK : cache_shard_attach(cached, part, fd, &name, error);
    if (fd >= 0 && !status) {
        free(*path);
        *path = name;
    }
    return status;
}

/* Opens a shard of object storage: its files in the cache, which fills them when they are read. */
static enum tokmap_status open_cached(struct shard *shard, struct cache *cache, const struct manifest_shard *line,
                                      struct tokmap_error *error)
{
    const bool stated = line && line->group != MANIFEST_UNSTATED;
    struct cache_shard *cached;
    enum tokmap_status status = cache_shard_find(cache, shard->index_path, stated ? line->content : NULL,
                                                 stated ? line->index_bytes : 0, &cached, error);
    char *local = status ? NULL : strdup(cache_shard_index(cached));
    if (!status && !local)
        status = error_set_memory(error, "the path of a shard", 0);
    if (local) {
        free(shard->index_path);
        shard->index_path = local;
    }
    if (!status)
        status = open_pair(shard, TOKMAP_READ_PREAD, error);
    if (!status)
        status = attach(cached, CACHE_TOKENS, shard->store.fd, &shard->store.path, error);
    if (!status)
        status = attach(cached, CACHE_MASK, shard->mask.fd, &shard->mask.path, error);
    cache_shard_free(cached);
    return status;
}

enum tokmap_status shard_open(struct shard **shard, char *index_path, enum tokmap_reading reading, struct cache *cache,
                              const struct manifest_shard *line, struct tokmap_error *error)
{
    struct shard *made = *shard = index_path ? calloc(1, sizeof *made) : NULL;
    if (!made) {
        free(index_path);
        return error_set_memory(error, "a shard", sizeof *made);
    }
    made->store.fd = made->mask.fd = -1;
    made->index_path = index_path;
    return cache && remote_is(index_path) ? open_cached(made, cache, line, error) : open_pair(made, reading, error);
}

/* ---- several ---- */

struct opening {
    struct shard_slot *slots;
    struct shard_names *names;
    uint64_t at_once; /* shards that a thread takes */
    uint64_t next;    /* the next shard that no thread has taken; accessed atomically */
    uint32_t ended;   /* a shard failed; accessed atomically */
};

/* Opens one shard. Returns false, and leaves its name, if that fails. */
static bool open_one(const struct opening *opening, uint64_t number)
{
    struct shard *shard;
    char *path = shard_names_take(opening->names, number);
    if (!shard_open(&shard, path, opening->names->reading, opening->names->cache,
                    shard_names_line(opening->names, number), NULL)) {
        opening->slots[number].open = shard;
        return true;
    }
    if (shard) {
        shard_names_return(opening->names, number, shard->index_path);
        shard->index_path = NULL;
    }
    dataset_shard_free(shard);
    return false;
}

static void open_some(void *user, uint32_t number_of_thread)
{
    (void)number_of_thread;
    struct opening *opening = user;
    while (!__atomic_load_n(&opening->ended, __ATOMIC_RELAXED)) {
        uint64_t number = __atomic_fetch_add(&opening->next, opening->at_once, __ATOMIC_RELAXED);
        const uint64_t end = min64(number + opening->at_once, opening->names->count);
        for (; number < end && !__atomic_load_n(&opening->ended, __ATOMIC_RELAXED); number++) {
            const struct manifest_shard *line = shard_names_line(opening->names, number);
            if ((!line || line->group == MANIFEST_UNSTATED) && !open_one(opening, number))
                __atomic_store_n(&opening->ended, 1, __ATOMIC_RELAXED);
        }
        if (number >= opening->names->count)
            return;
    }
}

void shards_open_ahead(struct shard_slot *slots, struct shard_names *names)
{
    struct opening opening = {.slots = slots, .names = names};
    const uint64_t count = names->count - names->manifest.stated;
    const uint64_t threads = names->cache ? min64(cache_connections(names->cache), count)
                                          : min64(min64(os_processors(), THREADS_MOST), count / SHARDS_PER_THREAD);
    if (count < 2 || (!names->cache && count / SHARDS_PER_THREAD < 2))
        return;
    opening.at_once = names->cache ? 1 : SHARDS_AT_ONCE;
    os_files_expect(count);
    os_threads_share("tokmap-open", (uint32_t)threads, open_some, &opening);
}

void dataset_shard_free(struct shard *shard)
{
    if (!shard)
        return;
    store_close(&shard->store);
    mask_file_close(&shard->mask);
    if (shard->foreign.close)
        shard->foreign.close(shard->foreign.user);
    index_close(&shard->index);
    free(shard->index_path);
    free(shard);
}

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
