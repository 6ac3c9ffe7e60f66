/* SPDX-License-Identifier: MIT */
/*
 * cache_shard.c - a shard of the storage as files in the folder: it is found, its index is brought, and its descriptors
 * are attached.
 *
 * Files. ID is the content id and the id of the index, in hexadecimal digits: two indexes of the same tokens, one with
 * hashes of pages and one without, are two shards here.
 *
 *     ID.tmx                     the index, whole, compared with the hashes of all its sections
 *     ID.bin, .bin.zst, .mask    as large as in the storage, with holes
 *     ID.state                   cache_state.h
 *     names/HASH                 of the name of an object: its ETag, and the ID, or the bytes of a manifest
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache_room.h"
#include "common/bytes.h"
#include "common/error.h"
#include "format/index_verify.h"
#include "format/shard_file.h"
#include "text/path.h"

#define UNITS_BEHIND 64
#define NO_PLAN ((uint64_t)1) /* in cache_shard.planned: the disk is too full to have a plan */

void cache_shard_hold(struct cache_shard *shard)
{
    (void)__atomic_add_fetch(&shard->users, 1, __ATOMIC_ACQ_REL);
}

void cache_shard_free(struct cache_shard *shard)
{
    if (!shard || __atomic_sub_fetch(&shard->users, 1, __ATOMIC_ACQ_REL))
        return;
    for (int part = 0; part < 2; part++) {
        os_close(shard->fds[part]);
        free(shard->names[part]);
    }
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

/* Opens a file of the shard in the folder, or makes it, with the size that the object has. */
static enum tokmap_status part_open(struct cache_shard *shard, enum cache_part part, enum shard_file file,
                                    uint64_t bytes, struct tokmap_error *error)
{
    char *path = shard_file_beside(shard->path, file, SHARD_FINAL);
    struct os_stat found = {.bytes = 0};
    shard->names[part] = shard_file_beside(shard->index_name, file, SHARD_FINAL);
    if (!path || !shard->names[part]) {
        free(path);
        return error_set_memory(error, "the path of a shard", 0);
    }
    shard->bytes[part] = bytes;
    int system = os_open(path, OS_WRITE_OPEN, &shard->fds[part]);
    if (!system)
        system = os_fstat(shard->fds[part], &found);
    if (!system && found.bytes != bytes)
        system = os_truncate(shard->fds[part], bytes);
    const enum tokmap_status status =
        system ? error_set_system(error, system, path, TOKMAP_NO_OFFSET,
                                  "a file of the cache cannot be made; check the folder, or name another one (cache=)")
               : TOKMAP_OK;
    free(path);
    return status;
}

/* Opens the shard's state, which says of each unit where it is. */
static enum tokmap_status state_open(struct cache_shard *shard, uint64_t units, struct tokmap_error *error)
{
    char *path = shard_file_beside(shard->path, SHARD_INDEX, SHARD_FINAL);
    char *state = path ? path_join("", 0, path, strlen(path) - strlen(".tmx"), ".state") : NULL;
    struct cache_unit *made = NULL;
    enum tokmap_status status =
        state ? cache_state_open(&shard->state, state, error) : error_set_memory(error, "the path of a state", 0);
    if ((!status && shard->state.count != units) || status == TOKMAP_ERROR_FORMAT) {
        cache_state_close(&shard->state);
        (void)os_unlink(state);
        status = TOKMAP_ERROR_NOT_FOUND;
    }
    if (status == TOKMAP_ERROR_NOT_FOUND && state) {
        status = TOKMAP_OK;
        made = os_memory_large_zeros(max64(units, 1), sizeof *made);
        if (!made)
            status = error_set_memory(error, "the state of a shard", units * sizeof *made);
        shard->state.count = units;
        for (uint64_t i = 0; i < units && !status; i++) {
            uint64_t bytes = 0;
            status = cache_unit_place(shard, i, &made[i].from, &bytes, error);
            made[i].bytes = (uint32_t)bytes;
            made[i].part = cache_part_of(shard, i);
        }
        if (!status)
            status = cache_state_make(state, made, units, error);
        if (!status)
            status = cache_state_open(&shard->state, state, error);
        if (!status && shard->state.count != units)
            status =
                error_set(error, TOKMAP_ERROR_FORMAT, state, 0, "this is the state of another shard; remove the file");
    }
    free(made);
    free(state);
    free(path);
    return status;
}

/* Opens the files of a shard whose index is in the folder. */
static enum tokmap_status files_open(struct cache_shard *shard, struct tokmap_error *error)
{
    struct index *index = &shard->index;
    enum tokmap_status status = index_open_as(index, shard->path, TOKMAP_READ_PREAD, error);
    if (!status)
        status = cache_index_verify(shard->cache, shard->path, index, error);
    if (status)
        return status;
    if (index->store.offset)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, shard->index_name, TOKMAP_NO_OFFSET,
                         "the index describes the tokens of another project's file, which are not read from object "
                         "storage; pack them, or copy both files to a disk of this machine");
    const bool sealed = index_is_sealed(index);
    shard->token_units = index_blocks(index);
    status = part_open(shard, CACHE_TOKENS, sealed ? SHARD_SEALED : SHARD_TOKENS,
                       sealed ? index->sealed_bytes : index->token_bytes, error);
    if (!status && index->mask_bytes)
        status = part_open(shard, CACHE_MASK, SHARD_MASK, index->mask_bytes, error);
    const uint64_t units = shard->token_units + (index->mask_bytes ? index_mask_blocks(index) : 0);
    if (!status)
        status = state_open(shard, units, error);
    shard->compared = status ? NULL : calloc(units / 64 + 1, sizeof *shard->compared);
    shard->distrusted = status ? NULL : calloc(units + 1, 1);
    if (!status && (!shard->compared || !shard->distrusted))
        status = error_set_memory(error, "the state of a shard", units);
    return status;
}

static bool is_damaged(enum tokmap_status status)
{
    return status == TOKMAP_ERROR_CORRUPT || status == TOKMAP_ERROR_FORMAT || status == TOKMAP_ERROR_TRUNCATED ||
           status == TOKMAP_ERROR_VERSION;
}

static enum tokmap_status find(struct cache *cache, const char *index_name, const uint8_t *content,
                               uint64_t index_bytes, bool again, struct cache_shard **found, struct tokmap_error *error)
{
    struct cache_shard *shard = *found = calloc(1, sizeof *shard);
    if (!shard)
        return error_set_memory(error, "a shard", sizeof *shard);
    *shard = (struct cache_shard){.cache = cache, .fds = {-1, -1}, .state = {.fd = -1}, .users = 1};
    shard->index_name = strdup(index_name);
    enum tokmap_status status = shard->index_name
                                    ? cache_index_bring(cache, index_name, content, index_bytes, &shard->path, error)
                                    : error_set_memory(error, "the name of a shard", strlen(index_name));
    if (!status)
        status = files_open(shard, error);
    if (!again && shard->path && is_damaged(status) && !os_unlink(shard->path)) {
        cache_shard_free(shard); /* the copy of the index in the folder */
        return find(cache, index_name, content, index_bytes, true, found, error);
    }
    return status;
}

enum tokmap_status cache_shard_find(struct cache *cache, const char *index_name, const uint8_t *content,
                                    uint64_t index_bytes, struct cache_shard **found, struct tokmap_error *error)
{
    return find(cache, index_name, content, index_bytes, false, found, error);
}

/* ---- reading ---- */

/* Compares a unit, whose readers compare nothing, at its first use by this process. */
static bool is_compared(const struct cache_attached *attached, uint64_t unit)
{
    struct cache_shard *shard = attached->shard;
    struct sealed_reader *reader = NULL;
    uint64_t *word = &shard->compared[unit / 64];
    const uint64_t bit = (uint64_t)1 << unit % 64;
    if (__atomic_load_n(&attached->compared_later, __ATOMIC_ACQUIRE) || __atomic_load_n(word, __ATOMIC_ACQUIRE) & bit)
        return true;
    uint64_t from, bytes = 0;
    size_t got;
    uint8_t *memory = cache_unit_place(shard, unit, &from, &bytes, NULL) ? NULL : os_memory_large(bytes);
    const bool good = memory && !os_pread(shard->fds[cache_part_of(shard, unit)], memory, bytes, from, &got) &&
                      got == bytes && cache_unit_matches(shard, unit, memory, bytes, &reader);
    sealed_reader_free(reader);
    free(memory);
    if (good)
        (void)__atomic_fetch_or(word, bit, __ATOMIC_ACQ_REL);
    return good;
}

/* Treats a unit as absent, if it was not so treated too often. */
static bool distrust(struct cache_shard *shard, uint64_t unit)
{
    uint64_t word = unit_word(&shard->state.units[unit]);
    if (__atomic_fetch_add(&shard->distrusted[unit], 1, __ATOMIC_ACQ_REL) >= CACHE_DISTRUST) {
        __atomic_store_n(&shard->distrusted[unit], CACHE_DISTRUST, __ATOMIC_RELEASE);
        return false;
    }
    while (word & UNIT_PRESENT && !unit_change(&shard->state.units[unit], &word, word & ~UNIT_PRESENT))
        ;
    return true;
}

/* Asks for what follows a unit that is about to be fetched, if this process has read the one before it: it probably
 * reads the whole file. A loader plans what it reads (cache_plan()), and needs no guess. */
static void ask_behind(const struct cache_attached *attached, uint64_t unit)
{
    struct cache_shard *shard = attached->shard;
    const uint64_t most = attached->part == CACHE_MASK ? shard->state.count : shard->token_units;
    bool absent;
    if (!__atomic_load_n(&attached->compared_later, __ATOMIC_ACQUIRE) && unit &&
        __atomic_load_n(&shard->compared[(unit - 1) / 64], __ATOMIC_RELAXED) >> (unit - 1) % 64 & 1)
        (void)cache_units_ask(shard, min64(unit + 1, most), min64(unit + 1 + UNITS_BEHIND, most), 0, &absent);
}

static int need(struct os_fetched *file, uint64_t at, uint64_t count, bool wait, uint64_t *state)
{
    const struct cache_attached *attached = (const struct cache_attached *)(const void *)file;
    struct cache_shard *shard = attached->shard;
    uint64_t unit, end;
    *state = 0;
    for (cache_units_of(shard, attached->part, at, count, &unit, &end); unit < end;) {
        const uint64_t word = unit_word(&shard->state.units[unit]);
        struct tokmap_error error = {0};
        if (word & UNIT_PRESENT && is_compared(attached, unit)) {
            *state = *state * 31 + word / UNIT_TIMES;
            unit++;
            continue;
        }
        if (!wait)
            return EAGAIN;
        const uint64_t now = unit_word(&shard->state.units[unit]);
        if (word & UNIT_PRESENT && (!(now & UNIT_PRESENT) || now / UNIT_TIMES != word / UNIT_TIMES))
            continue; /* it was given up while it was compared */
        if (word & UNIT_PRESENT && !distrust(shard, unit)) {
            error_set(&error, TOKMAP_ERROR_CORRUPT, shard->path, TOKMAP_NO_OFFSET,
                      "what was stored of %s in the cache folder does not match the index, again and again: the disk "
                      "is damaged, or something else changes the folder; name another one (cache=)",
                      shard->names[attached->part]);
            return error_keep(&error);
        }
        ask_behind(attached, unit);
        if (cache_fetch(shard, unit, 0, true, &error))
            return error_keep(&error);
    }
    return 0;
}

static bool kept(struct os_fetched *file, uint64_t at, uint64_t count, uint64_t state)
{
    const struct cache_attached *attached = (const struct cache_attached *)(const void *)file;
    const struct cache_shard *shard = attached->shard;
    uint64_t unit, end, now = 0;
    for (cache_units_of(shard, attached->part, at, count, &unit, &end); unit < end; unit++) {
        const uint64_t word = unit_word(&shard->state.units[unit]);
        if (!(word & UNIT_PRESENT))
            return false;
        now = now * 31 + word / UNIT_TIMES;
    }
    return now == state;
}

static void ask(struct os_fetched *file, uint64_t at, uint64_t count)
{
    const struct cache_attached *attached = (const struct cache_attached *)(const void *)file;
    uint64_t unit, end;
    bool absent;
    cache_units_of(attached->shard, attached->part, at, count, &unit, &end);
    (void)cache_units_ask(attached->shard, unit, end, 0, &absent);
}

static void attached_close(struct os_fetched *file)
{
    struct cache_attached *attached = (struct cache_attached *)(void *)file;
    cache_shard_free(attached->shard);
    free(attached);
}

enum tokmap_status cache_shard_attach(struct cache_shard *shard, enum cache_part part, int fd, char **name,
                                      struct tokmap_error *error)
{
    struct cache_attached *attached = calloc(1, sizeof *attached);
    *name = strdup(shard->names[part]);
    if (attached && *name) {
        *attached = (struct cache_attached){{need, kept, ask, attached_close}, shard, part, false};
        cache_shard_hold(shard);
        if (!os_fetched_set(fd, &attached->fetched))
            return TOKMAP_OK;
        cache_shard_free(shard);
    }
    free(attached);
    free(*name);
    *name = NULL;
    return error_set_memory(error, "a shard", sizeof *attached);
}

bool cache_compared_later(int fd)
{
    struct cache_attached *attached = (struct cache_attached *)(void *)os_fetched_of(fd);
    if (attached)
        __atomic_store_n(&attached->compared_later, true, __ATOMIC_RELEASE);
    return attached != NULL;
}

bool cache_distrust(int fd, uint64_t at, uint64_t bytes)
{
    const struct cache_attached *attached = (const struct cache_attached *)(const void *)os_fetched_of(fd);
    uint64_t unit = 0, end;
    bool again = attached && bytes;
    if (again)
        for (cache_units_of(attached->shard, attached->part, at, bytes, &unit, &end); unit < end; unit++)
            again = distrust(attached->shard, unit) && again;
    return again;
}

/* ---- what comes ---- */

bool cache_ask(int fd, uint64_t at, uint64_t bytes, uint64_t when, bool *absent)
{
    const struct cache_attached *attached = (const struct cache_attached *)(const void *)os_fetched_of(fd);
    uint64_t unit, end;
    if (!attached)
        return true;
    cache_units_in(attached->shard, attached->part, at, bytes, &unit, &end);
    return cache_units_ask(attached->shard, unit, end, when, absent);
}

void cache_fetch_now(int fd, uint64_t at, uint64_t bytes)
{
    const struct cache_attached *attached = (const struct cache_attached *)(const void *)os_fetched_of(fd);
    uint64_t unit, end;
    if (attached)
        for (cache_units_in(attached->shard, attached->part, at, bytes, &unit, &end); unit < end; unit++)
            if (cache_fetch(attached->shard, unit, 1, false, NULL))
                return;
}

void cache_plan(int fd, uint64_t at, uint64_t bytes, uint64_t when)
{
    const struct cache_attached *attached = (const struct cache_attached *)(const void *)os_fetched_of(fd);
    if (!attached)
        return;
    struct cache_shard *shard = attached->shard;
    struct cache_processes *processes = &shard->cache->processes;
    const uint64_t claim = cache_claim(processes);
    if (!claim)
        return;
    uint32_t *next = shard->state.next + (uint64_t)processes->number * shard->state.count;
    uint64_t planned = __atomic_load_n(&shard->planned, __ATOMIC_ACQUIRE);
    if ((planned & ~NO_PLAN) != claim) {
        planned = claim | (os_map_fill(next, shard->state.count * sizeof *next) ? NO_PLAN : 0);
        if (planned == claim)
            memset(next, 0, shard->state.count * sizeof *next); /* of an earlier process of this number */
        __atomic_store_n(&shard->planned, planned, __ATOMIC_RELEASE);
    }
    if (planned & NO_PLAN)
        return;
    uint64_t unit, end;
    for (cache_units_in(shard, attached->part, at, bytes, &unit, &end); unit < end; unit++)
        __atomic_store_n(&next[unit], when == UINT64_MAX ? 0 : max64((uint32_t)(when + 1), 1), __ATOMIC_RELAXED);
}

void cache_now(struct cache *cache, uint64_t row, uint64_t ahead)
{
    __atomic_store_n(&cache->ahead, ahead, __ATOMIC_RELAXED);
    if (cache_claim(&cache->processes))
        __atomic_store_n(&cache->processes.table->of[cache->processes.number].now, (uint32_t)row, __ATOMIC_RELAXED);
}
