/* SPDX-License-Identifier: MIT */
/*
 * cache_pool.c - the threads of a cache, which fetch what will be needed. They start at the first request, and end with
 * the cache. A child after fork() has none of its parent's, and starts its own.
 */
#include "cache_pool.h"

#include <assert.h>
#include <stdlib.h>

#include "cache_fetch.h"
#include "cache_shard.h"
#include "common/bytes.h"

#define JOBS_PER_THREAD 8
#define IDLE_NS ((uint64_t)100 * 1000000)

struct cache_pool {
    struct cache *cache;
    uint32_t process;
    struct os_mutex *mutex;
    struct os_condition *work, *done;
    void **users;    /* for whom each thread works; NULL: for nobody */
    uint32_t *stops; /* 1: what a thread does is not wanted any more; accessed atomically */
    uint32_t started;
    struct os_thread **threads;
    uint32_t thread_count;
    struct cache_job *jobs; /* a ring */
    uint64_t first, count, most;
    bool ends;
};

static uint64_t distance_of(struct cache *cache, uint64_t when)
{
    struct cache_processes *processes = &cache->processes;
    if (!cache_claim(processes))
        return 1;
    const uint32_t now = __atomic_load_n(&processes->table->of[processes->number].now, __ATOMIC_RELAXED);
    const uint32_t rows = (uint32_t)when - now;
    return rows < UINT32_MAX / 2 ? max64(rows, 1) : 1;
}

static void job_do(struct cache *cache, struct cache_job *job)
{
    if (job->work) {
        job->work(job->user, job->cell);
    } else {
        (void)cache_fetch(job->shard, job->cell, distance_of(cache, job->when), false, NULL);
        cache_shard_free(job->shard);
    }
}

static void pool_thread(void *user)
{
    struct cache_pool *pool = user;
    os_mutex_lock(pool->mutex);
    const uint32_t number = pool->started++;
    cache_client_stops(&pool->stops[number]);
    while (!pool->ends) {
        if (!pool->count) {
            if (!os_condition_wait_for(pool->work, pool->mutex, IDLE_NS)) {
                os_mutex_unlock(pool->mutex);
                cache_repeat_slow(pool->cache);
                os_mutex_lock(pool->mutex);
            }
            continue;
        }
        struct cache_job job = pool->jobs[pool->first];
        pool->first = (pool->first + 1) % pool->most;
        pool->count--;
        pool->users[number] = job.user;
        __atomic_store_n(&pool->stops[number], 0, __ATOMIC_RELAXED);
        os_mutex_unlock(pool->mutex);
        job_do(pool->cache, &job);
        os_mutex_lock(pool->mutex);
        if (pool->users[number])
            os_condition_broadcast(pool->done);
        pool->users[number] = NULL;
        __atomic_store_n(&pool->stops[number], pool->ends, __ATOMIC_RELAXED);
    }
    os_mutex_unlock(pool->mutex);
}

static void pool_dispose(struct cache_pool *pool)
{
    os_condition_free(pool->work);
    os_condition_free(pool->done);
    os_mutex_free(pool->mutex);
    free(pool->users);
    free(pool->stops);
    free(pool->threads);
    free(pool->jobs);
    free(pool);
}

static void pool_free(struct cache_pool *pool)
{
    if (!pool)
        return;
    os_mutex_lock(pool->mutex);
    pool->ends = true;
    for (uint32_t i = 0; i < pool->thread_count; i++)
        __atomic_store_n(&pool->stops[i], 1, __ATOMIC_RELAXED);
    os_condition_broadcast(pool->work);
    os_mutex_unlock(pool->mutex);
    for (uint32_t i = 0; i < pool->thread_count; i++)
        os_thread_join(pool->threads[i]);
    for (; pool->count; pool->count--, pool->first = (pool->first + 1) % pool->most)
        cache_shard_free(pool->jobs[pool->first].shard);
    pool_dispose(pool);
}

static struct cache_pool *pool_new(struct cache *cache)
{
    const uint32_t connections = __atomic_load_n(&cache->connections, __ATOMIC_RELAXED);
    struct cache_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    *pool = (struct cache_pool){.cache = cache, .process = os_process_id(), .most = JOBS_PER_THREAD * connections};
    pool->jobs = calloc(pool->most, sizeof *pool->jobs);
    pool->threads = calloc(connections, sizeof *pool->threads);
    pool->users = calloc(connections, sizeof *pool->users);
    pool->stops = calloc(connections, sizeof *pool->stops);
    const bool good = !os_mutex_new(&pool->mutex) && !os_condition_new(&pool->work) && !os_condition_new(&pool->done) &&
                      pool->jobs && pool->threads && pool->users && pool->stops;
    while (good && pool->thread_count < connections &&
           !os_thread_start(&pool->threads[pool->thread_count], "tokmap-fetch", pool_thread, pool))
        pool->thread_count++;
    if (pool->thread_count)
        return pool;
    pool_dispose(pool);
    return NULL;
}

/* Returns the pool of this process. */
static struct cache_pool *pool_of(struct cache *cache)
{
    struct cache_pool *pool = __atomic_load_n(&cache->pool, __ATOMIC_ACQUIRE);
    if (pool && pool->process == os_process_id())
        return pool;
    struct cache_pool *made = pool_new(cache), *before = pool;
    if (made && !__atomic_compare_exchange_n(&cache->pool, &before, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        pool_free(made); /* another thread was faster */
        return before;
    }
    return made;
}

/* Adds a job. Returns false if there are enough. */
static bool job_add(struct cache *cache, const struct cache_job *job)
{
    struct cache_pool *pool = pool_of(cache);
    if (!pool)
        return false;
    os_mutex_lock(pool->mutex);
    const bool room = pool->count < pool->most;
    if (room) {
        if (job->shard)
            cache_shard_hold(job->shard);
        pool->jobs[(pool->first + pool->count++) % pool->most] = *job;
        os_condition_signal(pool->work);
    }
    os_mutex_unlock(pool->mutex);
    return room;
}

void cache_pool_close(struct cache *cache)
{
    if (cache->pool && cache->pool->process == os_process_id())
        pool_free(cache->pool);
    cache->pool = NULL;
}

bool cache_ask_work(struct cache *cache, void (*work)(void *user, uint64_t number), void *user, uint64_t number)
{
    assert(work && user);
    return job_add(cache, &(struct cache_job){.work = work, .user = user, .cell = number});
}

bool cache_cells_ask(struct cache_shard *shard, uint64_t first, uint64_t end, uint64_t when, bool *absent)
{
    assert(cache_shard_is_open(shard) && first <= end && end <= shard->state.count);
    for (uint64_t cell = first; cell < end; cell++) {
        const uint64_t word = cell_word(&shard->state.cells[cell]);
        if (word & CELL_PRESENT)
            continue;
        *absent = true;
        if (word & CELL_CLAIM && cache_claim_lives(&shard->cache->processes, word))
            continue;
        if (!job_add(shard->cache, &(struct cache_job){.shard = shard, .cell = cell, .when = when}))
            return false;
    }
    return true;
}

void cache_forget(struct cache *cache, void *user)
{
    assert(user);
    struct cache_pool *pool = __atomic_load_n(&cache->pool, __ATOMIC_ACQUIRE);
    if (!pool || pool->process != os_process_id())
        return;
    os_mutex_lock(pool->mutex);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < pool->count; i++) {
        const struct cache_job job = pool->jobs[(pool->first + i) % pool->most];
        if (!job.work || job.user != user)
            pool->jobs[(pool->first + kept++) % pool->most] = job;
    }
    pool->count = kept;
    for (bool busy = true; busy;) {
        busy = false;
        for (uint32_t i = 0; i < pool->thread_count; i++)
            if (pool->users[i] == user) {
                __atomic_store_n(&pool->stops[i], 1, __ATOMIC_RELAXED);
                busy = true;
            }
        if (busy)
            (void)os_condition_wait_for(pool->done, pool->mutex, IDLE_NS);
    }
    os_mutex_unlock(pool->mutex);
}
