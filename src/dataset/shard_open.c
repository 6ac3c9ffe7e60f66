/* SPDX-License-Identifier: MIT */
/*
 * shard_open.c - see shard_open.h.
 *
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
#include "shard_open.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache/cache_attach.h"
#include "cache/cache_folder.h"
#include "common/bytes.h"
#include "common/error.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "remote/remote_url.h"
#include "text/path.h"

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
