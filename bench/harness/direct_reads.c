/* SPDX-License-Identifier: MIT */
/* direct_reads.c - see direct_reads.h. */
#include "direct_reads.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "platform/os.h"

struct direct_pool {
    int fd;
    uint32_t depth, started;
    struct os_thread **threads;
    struct os_mutex *mutex;
    struct os_condition *work, *done;
    /* Protected by the mutex: */
    uint64_t round;   /* its change starts the threads */
    uint32_t working; /* threads that have not finished the round */
    bool ending;
    int system; /* the errno of the round's first failure, or 0 */
    /* Set before a round and read by the threads during it: */
    const struct byte_range *ranges;
    uint64_t count;
    uint64_t next; /* index of the next range; threads add to it atomically */
};

static int read_ranges(struct direct_pool *pool, void *buffer)
{
    for (;;) {
        const uint64_t mine = __atomic_fetch_add(&pool->next, 1, __ATOMIC_RELAXED);
        if (mine >= pool->count)
            return 0;
        size_t got = 0;
        const struct byte_range *range = &pool->ranges[mine];
        int system = os_pread(pool->fd, buffer, (size_t)range->bytes, range->offset, &got);
        if (system)
            return system;
    }
}

static void reader(void *user)
{
    struct direct_pool *pool = user;
    void *buffer = NULL;
    int failed = os_memory_new(DIRECT_READ_MOST, false, &buffer);
    uint64_t seen = 0;
    os_mutex_lock(pool->mutex);
    for (;;) {
        while (pool->round == seen && !pool->ending)
            os_condition_wait(pool->work, pool->mutex);
        if (pool->ending)
            break;
        seen = pool->round;
        os_mutex_unlock(pool->mutex);
        int system = failed ? failed : read_ranges(pool, buffer);
        os_mutex_lock(pool->mutex);
        if (system && !pool->system)
            pool->system = system;
        if (!--pool->working)
            os_condition_signal(pool->done);
    }
    os_mutex_unlock(pool->mutex);
    os_memory_free(buffer, DIRECT_READ_MOST);
}

int direct_pool_new(struct direct_pool **pool, const char *path, uint32_t depth)
{
    int system = ENOMEM;
    assert(depth);
    struct direct_pool *made = calloc(1, sizeof *made);
    *pool = NULL;
    if (!made)
        return ENOMEM;
    made->fd = -1;
    made->depth = depth;
    made->threads = calloc(depth, sizeof(struct os_thread *));
    if (made->threads)
        system = os_open(path, OS_READ_DIRECT, &made->fd);
    if (!system)
        system = os_mutex_new(&made->mutex);
    if (!system)
        system = os_condition_new(&made->work);
    if (!system)
        system = os_condition_new(&made->done);
    for (uint32_t i = 0; !system && i < depth; i++) {
        system = os_thread_start(&made->threads[i], "direct-read", reader, made);
        made->started += !system;
    }
    if (system)
        direct_pool_free(made);
    else
        *pool = made;
    return system;
}

void direct_pool_free(struct direct_pool *pool)
{
    if (!pool)
        return;
    if (pool->started) {
        os_mutex_lock(pool->mutex);
        pool->ending = true;
        os_condition_broadcast(pool->work);
        os_mutex_unlock(pool->mutex);
        for (uint32_t i = 0; i < pool->started; i++)
            os_thread_join(pool->threads[i]);
    }
    if (pool->done)
        os_condition_free(pool->done);
    if (pool->work)
        os_condition_free(pool->work);
    if (pool->mutex)
        os_mutex_free(pool->mutex);
    if (pool->fd >= 0)
        os_close(pool->fd);
    free(pool->threads);
    free(pool);
}

int direct_pool_read(struct direct_pool *pool, const struct byte_range *ranges, uint64_t count, double *seconds)
{
    for (uint64_t i = 0; i < count; i++)
        assert(ranges[i].bytes <= DIRECT_READ_MOST);
    os_mutex_lock(pool->mutex);
    pool->ranges = ranges;
    pool->count = count;
    pool->next = 0;
    pool->system = 0;
    pool->working = pool->depth;
    pool->round++;
    const uint64_t started = os_clock_ns();
    os_condition_broadcast(pool->work);
    while (pool->working)
        os_condition_wait(pool->done, pool->mutex);
    *seconds = (double)(os_clock_ns() - started) / 1e9;
    const int system = pool->system;
    os_mutex_unlock(pool->mutex);
    return system;
}

struct byte_range page_span(uint64_t offset, uint64_t bytes)
{
    const uint64_t page = os_page_bytes();
    const uint64_t first = round_down(offset, page);
    return (struct byte_range){first, round_up(offset + bytes, page) - first};
}
