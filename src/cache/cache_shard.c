/* SPDX-License-Identifier: MIT */
/* cache_shard.c - see cache_shard.h. CACHE.md describes the files. */
#include "cache_shard.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache_index.h"
#include "cache_state.h"
#include "common/bytes.h"
#include "common/error.h"
#include "format/shard_ranges.h"
#include "format/values_file.h"
#include "text/path.h"

#define WAITS 60000 /* of a millisecond, for another process that makes files, or evicts */

void cache_shard_hold(struct cache_shard *shard)
{
    assert(__atomic_load_n(&shard->users, __ATOMIC_RELAXED)); /* the caller, or whoever it acts for, holds the shard */
    (void)__atomic_add_fetch(&shard->users, 1, __ATOMIC_ACQ_REL);
}

void cache_shard_free(struct cache_shard *shard)
{
    assert(!shard || __atomic_load_n(&shard->users, __ATOMIC_RELAXED));
    if (!shard || __atomic_sub_fetch(&shard->users, 1, __ATOMIC_ACQ_REL))
        return;
    for (int part = 0; part < 2; part++) {
        os_close(shard->fds[part]);
        free(shard->names[part]);
    }
    free((void *)(uintptr_t)shard->index.values);
    index_close(&shard->index);
    cache_state_close(&shard->state);
    free(shard->index_name);
    free(shard->path);
    free(shard->compared);
    free(shard->distrusted);
    free(shard);
}

const char *cache_shard_index(const struct cache_shard *shard)
{
    return shard->path;
}

/* ---- opening ---- */

/* Opens a file of the shard in the folder, or makes it new, with the size that the object has. */
static enum tokmap_status part_open(struct cache_shard *shard, enum shard_file file, bool make,
                                    struct tokmap_error *error)
{
    const enum cache_part part = file == SHARD_MASK ? CACHE_MASK : CACHE_TOKENS;
    const uint64_t bytes = shard->bytes[part] = shard_file_size(&shard->index, file);
    char *path = shard_file_beside(shard->path, file, SHARD_FINAL); /* also of values */
    struct os_stat found = {.bytes = 0};
    int system = path ? 0 : ENOMEM;
    if (!system && make && (system = os_unlink(path)) == ENOENT)
        system = 0;
    if (!system)
        system = os_open(path, make ? OS_WRITE_NEW : OS_WRITE_OLD, &shard->fds[part]);
    if (!system)
        system = make ? os_truncate(shard->fds[part], bytes) : os_fstat(shard->fds[part], &found);
    if (!system && !make && found.bytes != bytes)
        system = ENOENT; /* something has cut it */
    const enum tokmap_status status =
        system ? error_set_system(error, system, path, TOKMAP_NO_OFFSET,
                                  "a file of the cache cannot be made; check the folder, or name another one (cache=)")
               : TOKMAP_OK;
    free(path);
    return status;
}

static enum tokmap_status parts_open(struct cache_shard *shard, bool make, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (enum shard_file file = 0; file < SHARD_FILES && !status; file++)
        if (shard_has_file(&shard->index, file))
            status = part_open(shard, file, make, error);
    return status;
}

static void parts_close(struct cache_shard *shard)
{
    for (int part = 0; part < 2; part++) {
        os_close(shard->fds[part]);
        shard->fds[part] = -1;
    }
    cache_state_close(&shard->state);
}

/* Opens the files of the shard that are in the folder. NOT_FOUND: not all of them are there, and sound. */
static enum tokmap_status parts_find(struct cache_shard *shard, const char *state, uint64_t cells,
                                     struct tokmap_error *error)
{
    enum tokmap_status status = cache_state_open(&shard->state, state, error);
    if (!status)
        status = parts_open(shard, false, error);
    if (status == TOKMAP_ERROR_FORMAT ||
        (!status && (!cache_state_kept(&shard->state, state) || shard->state.count != cells ||
                     shard->state.files != cache_files(shard->fds))))
        status = TOKMAP_ERROR_NOT_FOUND;
    if (status)
        parts_close(shard);
    return status;
}

/* Makes the files of the shard. The state that was there goes first and the new one, which says of each cell where it
 * is, comes last. So a process that finds the same state before and after it has opened the files has those that the
 * state is about, whatever was removed. Who has the old ones open continues with them. */
static enum tokmap_status parts_make(struct cache_shard *shard, const char *state, uint64_t cells,
                                     struct tokmap_error *error)
{
    struct cache_cell *made = os_memory_large_zeros(max64(cells, 1), sizeof *made);
    enum tokmap_status status =
        made ? TOKMAP_OK : error_set_memory(error, "the state of a shard", cells * sizeof *made);
    shard->state.count = cells;
    for (uint64_t i = 0; i < cells && !status; i++) {
        uint64_t bytes = 0;
        status = cache_cells_place(shard, i, i + 1, &made[i].from, &bytes, error);
        made[i].bytes = (uint32_t)bytes;
        made[i].part = cache_part_of(shard, i);
    }
    const int system = status ? 0 : os_unlink(state);
    if (system && system != ENOENT)
        status = error_set_system(error, system, state, TOKMAP_NO_OFFSET, "the state of a shard cannot be removed");
    if (!status)
        status = parts_open(shard, true, error);
    if (!status)
        status = cache_state_make(state, made, cells, cache_files(shard->fds), error);
    if (!status)
        status = cache_state_open(&shard->state, state, error);
    if (!status && !cache_state_kept(&shard->state, state))
        status =
            error_set(error, TOKMAP_ERROR_IO, state, TOKMAP_NO_OFFSET, "something replaced the file as it was made");
    free(made);
    return status;
}

/* Opens the files of the shard, or makes them all if one is missing. */
static enum tokmap_status parts_ready(struct cache_shard *shard, uint64_t cells, struct tokmap_error *error)
{
    char *state = path_join("", 0, shard->path, strlen(shard->path) - strlen(".tmx"), ".state");
    enum tokmap_status status =
        state ? parts_find(shard, state, cells, error) : error_set_memory(error, "the path of a state", 0);
    for (int waits = 0; status == TOKMAP_ERROR_NOT_FOUND; waits++) {
        if (cache_evict_begin(&shard->cache->processes)) {
            status = parts_find(shard, state, cells, error); /* another process may have made them */
            if (status == TOKMAP_ERROR_NOT_FOUND)
                status = parts_make(shard, state, cells, error);
            cache_evict_end(&shard->cache->processes);
            break;
        } else if (waits == WAITS) {
            status = error_set(error, TOKMAP_ERROR_IO, shard->cache->folder, TOKMAP_NO_OFFSET,
                               "another process has held the lock of the cache folder for a minute; end it if it is "
                               "stopped, or name another folder (cache=)");
        } else if (os_wait_readable(-1, 1000000) == EINTR) {
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, shard->cache->folder, TOKMAP_NO_OFFSET, "interrupted");
        }
    }
    free(state);
    return status;
}

/* Opens the files of a shard whose index is in the folder. */
static enum tokmap_status files_open(struct cache_shard *shard, struct tokmap_error *error)
{
    struct index *index = &shard->index;
    struct values_ranges *ranges = NULL;
    const bool values = values_file_is(shard->index_name);
    enum tokmap_status status = values ? values_ranges_load(&ranges, shard->path, error)
                                       : index_open_as(index, shard->path, TOKMAP_READ_PREAD, error);
    if (!status && !values)
        status = cache_index_verify(shard->cache, shard->path, index, error);
    if (status)
        return status;
    index->values = ranges;
    if (index->store.offset)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, shard->index_name, TOKMAP_NO_OFFSET,
                         "the index describes the tokens of another project's file, which are not read from object "
                         "storage; pack them, or copy both files to a disk of this machine");
    shard->token_cells =
        values ? ranges->count
               : max64(index_blocks(index), index_is_sealed(index)); /* a seek table is there, if nothing else */
    const uint64_t cells = shard->token_cells + index_mask_blocks(index);
    for (enum shard_file file = 0; file < SHARD_FILES && !status; file++) {
        char **name = &shard->names[file == SHARD_MASK ? CACHE_MASK : CACHE_TOKENS];
        if (shard_has_file(index, file) &&
            !(*name = values ? strdup(shard->index_name) : shard_file_beside(shard->index_name, file, SHARD_FINAL)))
            status = error_set_memory(error, "the name of an object", 0);
    }
    if (!status)
        status = parts_ready(shard, cells, error);
    shard->compared = status ? NULL : calloc(cells / 64 + 1, sizeof *shard->compared);
    shard->distrusted = status ? NULL : calloc(cells + 1, 1);
    if (!status && (!shard->compared || !shard->distrusted))
        status = error_set_memory(error, "the state of a shard", cells);
    return status;
}

static bool is_damaged(enum tokmap_status status)
{
    return status == TOKMAP_ERROR_CORRUPT || status == TOKMAP_ERROR_FORMAT || status == TOKMAP_ERROR_TRUNCATED ||
           status == TOKMAP_ERROR_VERSION;
}

enum tokmap_status cache_replaced(const struct cache *cache, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_IO, cache->folder, TOKMAP_NO_OFFSET,
                     "the cache folder, or a file in it, was removed or replaced while it was used; start what uses it "
                     "again, and remove the folder only when no process uses it");
}

enum tokmap_status cache_shard_find(struct cache *cache, const char *index_name, const uint8_t *content,
                                    uint64_t index_bytes, struct cache_shard **found, struct tokmap_error *error)
{
    assert(content || !index_bytes);
    for (bool again = false;; again = true) {
        struct cache_shard *shard = *found = calloc(1, sizeof *shard);
        if (!shard)
            return error_set_memory(error, "a shard", sizeof *shard);
        *shard = (struct cache_shard){.cache = cache, .fds = {-1, -1}, .state = {.fd = -1}, .users = 1};
        shard->index_name = strdup(index_name);
        struct tokmap_error reason = {0};
        enum tokmap_status status =
            shard->index_name ? cache_index_bring(cache, index_name, content, index_bytes, &shard->path, &reason)
                              : error_set_memory(&reason, "the name of a shard", strlen(index_name));
        if (!status)
            status = files_open(shard, &reason);
        const bool missing = status && reason.system == ENOENT;
        const bool kept = cache_processes_kept(&cache->processes, cache->folder);
        if (!again && kept && (missing || (shard->path && is_damaged(status) && !os_unlink(shard->path)))) {
            cache_shard_free(shard); /* another process has removed a file that was damaged, or this one has */
            continue;
        }
        if (missing || !kept)
            return cache_replaced(cache, error);
        if (status && error)
            *error = reason;
        return status;
    }
}
