/* SPDX-License-Identifier: MIT */
/*
 * cache_attach.c - see cache_attach.h.
 *
 * os_pread() of an attached descriptor asks need() first, which fetches what is absent, reads, and then asks kept()
 * whether the cells were there all the time: another process may have given one up in between.
 */
#include "cache_attach.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache_fetch.h"
#include "cache_pool.h"
#include "cache_state.h"
#include "common/bytes.h"
#include "common/error.h"

#define CELLS_BEHIND 64
#define NO_PLAN ((uint64_t)1) /* in cache_shard.planned: the disk is too full to have a plan */

/* ---- reading ---- */

/* Compares a cell, whose readers compare nothing, at its first use by this process. */
static bool is_compared(const struct cache_attached *attached, uint64_t cell)
{
    struct cache_shard *shard = attached->shard;
    struct sealed_reader *reader = NULL;
    uint64_t *word = &shard->compared[cell / 64];
    const uint64_t bit = (uint64_t)1 << cell % 64;
    if (__atomic_load_n(&attached->compared_later, __ATOMIC_ACQUIRE) || __atomic_load_n(word, __ATOMIC_ACQUIRE) & bit)
        return true;
    uint64_t from, bytes = 0;
    size_t got;
    uint8_t *memory = cache_cells_place(shard, cell, cell + 1, &from, &bytes, NULL) ? NULL : os_memory_large(bytes);
    const bool good = memory && !os_pread(shard->fds[cache_part_of(shard, cell)], memory, bytes, from, &got) &&
                      got == bytes && cache_cell_matches(shard, cell, memory, &reader);
    sealed_reader_free(reader);
    free(memory);
    if (good)
        (void)__atomic_fetch_or(word, bit, __ATOMIC_ACQ_REL);
    return good;
}

/* Treats a cell as absent, if it was not so treated too often. */
static bool distrust(struct cache_shard *shard, uint64_t cell)
{
    uint64_t word = cell_word(&shard->state.cells[cell]);
    if (__atomic_fetch_add(&shard->distrusted[cell], 1, __ATOMIC_ACQ_REL) >= CACHE_DISTRUST) {
        __atomic_store_n(&shard->distrusted[cell], CACHE_DISTRUST, __ATOMIC_RELEASE);
        return false;
    }
    while (word & CELL_PRESENT && !cell_change(&shard->state.cells[cell], &word, word & ~CELL_PRESENT))
        ;
    return true;
}

/* Asks for what follows a cell that is about to be fetched, if this process has read the one before it: it probably
 * reads the whole file. A loader plans what it reads (cache_plan()), and needs no guess. */
static void ask_behind(const struct cache_attached *attached, uint64_t cell)
{
    struct cache_shard *shard = attached->shard;
    const uint64_t most = attached->part == CACHE_MASK ? shard->state.count : shard->token_cells;
    bool absent;
    if (!__atomic_load_n(&attached->compared_later, __ATOMIC_ACQUIRE) && cell &&
        __atomic_load_n(&shard->compared[(cell - 1) / 64], __ATOMIC_RELAXED) >> (cell - 1) % 64 & 1)
        (void)cache_cells_ask(shard, min64(cell + 1, most), min64(cell + 1 + CELLS_BEHIND, most), 0, &absent);
}

static int need(struct os_fetched *file, uint64_t at, uint64_t count, bool wait, uint64_t *state)
{
    const struct cache_attached *attached = (const struct cache_attached *)(const void *)file;
    struct cache_shard *shard = attached->shard;
    uint64_t cell, end;
    *state = 0;
    for (cache_cells_of(shard, attached->part, at, count, &cell, &end); cell < end;) {
        const uint64_t word = cell_word(&shard->state.cells[cell]);
        struct tokmap_error error = {0};
        if (word & CELL_PRESENT && is_compared(attached, cell)) {
            *state = *state * 31 + word / CELL_TIMES;
            cell++;
            continue;
        }
        if (!wait)
            return EAGAIN;
        const uint64_t now = cell_word(&shard->state.cells[cell]);
        if (word & CELL_PRESENT && (!(now & CELL_PRESENT) || now / CELL_TIMES != word / CELL_TIMES))
            continue; /* it was given up while it was compared */
        if (word & CELL_PRESENT && !distrust(shard, cell)) {
            error_set(&error, TOKMAP_ERROR_CORRUPT, shard->path, TOKMAP_NO_OFFSET,
                      "what was stored of %s in the cache folder does not match the index, again and again: the disk "
                      "is damaged, or something else changes the folder; name another one (cache=)",
                      shard->names[attached->part]);
            return error_keep(&error);
        }
        ask_behind(attached, cell);
        if (cache_fetch(shard, cell, 0, true, &error))
            return error_keep(&error);
    }
    return 0;
}

static bool kept(struct os_fetched *file, uint64_t at, uint64_t count, uint64_t state)
{
    const struct cache_attached *attached = (const struct cache_attached *)(const void *)file;
    const struct cache_shard *shard = attached->shard;
    uint64_t cell, end, now = 0;
    for (cache_cells_of(shard, attached->part, at, count, &cell, &end); cell < end; cell++) {
        const uint64_t word = cell_word(&shard->state.cells[cell]);
        if (!(word & CELL_PRESENT))
            return false;
        now = now * 31 + word / CELL_TIMES;
    }
    return now == state;
}

static void ask(struct os_fetched *file, uint64_t at, uint64_t count)
{
    const struct cache_attached *attached = (const struct cache_attached *)(const void *)file;
    uint64_t cell, end;
    bool absent;
    cache_cells_of(attached->shard, attached->part, at, count, &cell, &end);
    (void)cache_cells_ask(attached->shard, cell, end, 0, &absent);
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
    struct os_stat given, own;
    assert(part <= CACHE_MASK && cache_shard_is_open(shard));
    *name = NULL;
    if (os_fstat(fd, &given) || os_fstat(shard->fds[part], &own) || given.inode != own.inode ||
        given.device != own.device)
        return error_set(error, TOKMAP_ERROR_IO, shard->path, TOKMAP_NO_OFFSET,
                         "a file of this shard in the cache folder was removed or replaced while it was opened; start "
                         "what uses it again, and remove files only when no process uses them");
    struct cache_attached *attached = calloc(1, sizeof *attached);
    *name = strdup(shard->names[part]);
    if (attached && *name) {
        *attached = (struct cache_attached){{need, kept, ask, attached_close, 0}, shard, part, false};
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
    uint64_t cell = 0, end;
    bool again = attached && bytes;
    if (again)
        for (cache_cells_of(attached->shard, attached->part, at, bytes, &cell, &end); cell < end; cell++)
            again = distrust(attached->shard, cell) && again;
    return again;
}

/* ---- what comes ---- */

bool cache_ask(int fd, uint64_t at, uint64_t bytes, uint64_t when, bool *absent)
{
    const struct cache_attached *attached = (const struct cache_attached *)(const void *)os_fetched_of(fd);
    uint64_t cell, end;
    if (!attached)
        return true;
    cache_cells_in(attached->shard, attached->part, at, bytes, &cell, &end);
    return cache_cells_ask(attached->shard, cell, end, when, absent);
}

void cache_fetch_now(int fd, uint64_t at, uint64_t bytes)
{
    const struct cache_attached *attached = (const struct cache_attached *)(const void *)os_fetched_of(fd);
    uint64_t cell, end;
    if (attached)
        for (cache_cells_in(attached->shard, attached->part, at, bytes, &cell, &end); cell < end; cell++)
            if (cache_fetch(attached->shard, cell, 1, false, NULL))
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
    if ((planned & ~NO_PLAN) != claim &&
        __atomic_compare_exchange_n(&shard->planned, &planned, claim | NO_PLAN, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE) &&
        !os_map_fill(next, shard->state.count * sizeof *next)) {
        for (uint64_t i = 0; i < shard->state.count; i++) /* of an earlier process of this number */
            __atomic_store_n(&next[i], 0, __ATOMIC_RELAXED);
        (void)__atomic_fetch_or(&shard->state.rows[processes->number / 64], (uint64_t)1 << processes->number % 64,
                                __ATOMIC_ACQ_REL);
        __atomic_store_n(&shard->planned, planned = claim, __ATOMIC_RELEASE);
    }
    if (planned != claim)
        return;
    uint64_t cell, end;
    for (cache_cells_in(shard, attached->part, at, bytes, &cell, &end); cell < end; cell++)
        __atomic_store_n(&next[cell], when == UINT64_MAX ? 0 : max64((uint32_t)(when + 1), 1), __ATOMIC_RELAXED);
}

void cache_now(struct cache *cache, uint64_t row, uint64_t ahead)
{
    __atomic_store_n(&cache->ahead, ahead, __ATOMIC_RELAXED);
    if (cache_claim(&cache->processes))
        __atomic_store_n(&cache->processes.table->of[cache->processes.number].now, (uint32_t)row, __ATOMIC_RELAXED);
}
