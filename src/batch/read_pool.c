/* SPDX-License-Identifier: MIT */
/*
 * read_pool.c - see read_pool.h.
 *
 * The pool has a fixed number of reads, each with a buffer. A read goes from state to state:
 *
 *     VACANT -> QUEUED -> READING -> DONE -> VACANT     it was asked for, or is needed now
 *                 |          |
 *                 |          +-> ABANDONED -> VACANT    it missed its deadline, or was forgotten; its thread ends it
 *                 +-> VACANT                            the same, before a thread began it
 *
 * All states are guarded by one mutex, which no thread holds while it reads. Queued reads are begun in the order of
 * their numbers, so that what is needed first comes first; a read that somebody waits for gets the number 0. What was
 * asked for several times stays DONE until it was taken as often: rows that are shorter than a page share the page.
 */
#include "read_pool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"

#define STAT_AT UINT64_MAX            /* the offset of a read whose result is a struct os_stat */
#define STAT_NS ((uint64_t)100000000) /* for which closing waits for such a read, so that its file is still open */

enum state { VACANT, QUEUED, READING, DONE, ABANDONED };

struct read {
    enum state state;
    uint64_t number; /* of the request */
    int fd;
    uint64_t offset, bytes;
    uint32_t others; /* times that it was asked for again, and not taken since */
    bool hint;       /* nothing is read into the buffer, and nobody takes a result */
    int system;      /* the result, in the state DONE */
    size_t got;
    uint8_t *buffer;
};

struct read_pool {
    struct os_mutex *mutex;
    struct os_condition *work; /* a read was queued, or the pool is being closed */
    struct os_condition *done; /* a read has ended */
    uint32_t users;            /* the owner, and the threads that run; the last one frees the pool */
    uint32_t threads;
    uint32_t waiting; /* threads that wait for work */
    bool closing;
    uint64_t deadline_ns, buffer_bytes;
    struct read *reads;
    uint32_t count;
    uint64_t number;
    void *memory;
    uint64_t memory_bytes;
    uint64_t ahead, timeouts; /* accessed atomically */
};

static void pool_free(struct read_pool *pool)
{
    os_memory_free(pool->memory, pool->memory_bytes);
    os_condition_free(pool->work);
    os_condition_free(pool->done);
    os_mutex_free(pool->mutex);
    free(pool->reads);
    free(pool);
}

/* Ends one use of the pool, whose mutex is locked. */
static void pool_leave(struct read_pool *pool)
{
    const bool last = --pool->users == 0;
    os_mutex_unlock(pool->mutex);
    if (last)
        pool_free(pool);
}

/* ---- the threads ---- */

static struct read *first_queued(struct read_pool *pool)
{
    struct read *first = NULL;
    for (uint32_t i = 0; i < pool->count; i++)
        if (pool->reads[i].state == QUEUED && (!first || pool->reads[i].number < first->number))
            first = &pool->reads[i];
    return first;
}

static void read_one(struct read_pool *pool, struct read *read)
{
    read->state = READING;
    const int fd = read->fd;
    const uint64_t offset = read->offset, bytes = read->bytes;
    const bool hint = read->hint;
    size_t got = 0;
    int system = 0;
    struct os_fetched *file = os_fetched_hold(fd); /* whose descriptor may be closed while it is read */
    os_mutex_unlock(pool->mutex);
    if (hint) {
        os_fetched_read_ahead(file, fd, offset, bytes);
    } else if (offset == STAT_AT) {
        system = os_fstat(fd, (struct os_stat *)(void *)read->buffer);
        got = bytes;
    } else {
        system = os_fetched_pread(file, fd, read->buffer, bytes, offset, &got);
    }
    os_fetched_release(file);
    os_mutex_lock(pool->mutex);
    read->system = system;
    read->got = got;
    read->state = read->state == ABANDONED || hint ? VACANT : DONE;
    os_condition_broadcast(pool->done);
}

static void work(void *user)
{
    struct read_pool *pool = user;
    os_mutex_lock(pool->mutex);
    while (!pool->closing) {
        struct read *read = first_queued(pool);
        if (read) {
            read_one(pool, read);
            continue;
        }
        pool->waiting++;
        os_condition_wait(pool->work, pool->mutex);
        pool->waiting--;
    }
    pool_leave(pool);
}

/* ---- opening and closing ---- */

static enum tokmap_status pool_threads(struct read_pool *pool, uint32_t threads, struct tokmap_error *error)
{
    for (; pool->threads < threads; pool->threads++) {
        os_mutex_lock(pool->mutex);
        pool->users++;
        os_mutex_unlock(pool->mutex);
        int system = os_thread_start_detached("tokmap-read", work, pool);
        if (!system)
            continue;
        os_mutex_lock(pool->mutex);
        pool->users--;
        os_mutex_unlock(pool->mutex);
        return error_set_system(error, system, NULL, TOKMAP_NO_OFFSET,
                                "cannot start a thread that reads; raise the limit on threads, or lower "
                                "io_threads");
    }
    return TOKMAP_OK;
}

enum tokmap_status read_pool_open(struct read_pool **made, const struct read_pool_options *options,
                                  struct tokmap_error *error)
{
    assert(options->threads && options->buffers && options->buffer_bytes);
    struct read_pool *pool = calloc(1, sizeof *pool);
    *made = NULL;
    if (!pool)
        return error_set_memory(error, "the threads that read", sizeof *pool);
    pool->users = 1;
    pool->count = options->buffers;
    pool->deadline_ns = options->deadline_ns;
    pool->buffer_bytes = round_up(options->buffer_bytes, 64);
    pool->reads = calloc(pool->count, sizeof *pool->reads);
    if (!pool->reads || mul_overflows(pool->buffer_bytes, pool->count, &pool->memory_bytes) ||
        os_memory_new(pool->memory_bytes, false, &pool->memory) || os_mutex_new(&pool->mutex) ||
        os_condition_new(&pool->work) || os_condition_new(&pool->done)) {
        const uint64_t wanted = pool->memory_bytes;
        pool_free(pool);
        return error_set_memory(error, "the buffers of reads", wanted);
    }
    for (uint32_t i = 0; i < pool->count; i++)
        pool->reads[i].buffer = (uint8_t *)pool->memory + i * pool->buffer_bytes;
    enum tokmap_status status = pool_threads(pool, options->threads, error);
    if (status)
        read_pool_close(pool);
    else
        *made = pool;
    return status;
}

void read_pool_close(struct read_pool *pool)
{
    if (!pool)
        return;
    os_mutex_lock(pool->mutex);
    pool->closing = true;
    os_condition_broadcast(pool->work);
    for (uint32_t i = 0; i < pool->count; i++) /* a stat ends at once, unless the storage hangs */
        if (pool->reads[i].offset == STAT_AT && (pool->reads[i].state == READING || pool->reads[i].state == ABANDONED))
            (void)os_condition_wait_for(pool->done, pool->mutex, STAT_NS);
    pool_leave(pool);
}

/* ---- reads ---- */

/* Queues a read in a vacant place; NULL if there is none. The mutex is locked. */
static struct read *queue(struct read_pool *pool, int fd, uint64_t offset, uint64_t bytes, uint64_t number)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        struct read *read = &pool->reads[i];
        if (read->state != VACANT)
            continue;
        read->state = QUEUED;
        read->hint = false;
        read->others = 0;
        read->number = number;
        read->fd = fd;
        read->offset = offset;
        read->bytes = bytes;
        if (pool->waiting)
            os_condition_signal(pool->work);
        return read;
    }
    return NULL;
}

/* Gives up a read that nobody wants any more. The mutex is locked. */
static void give_up(struct read_pool *pool, struct read *read)
{
    assert(read->state != VACANT && read->state != ABANDONED);
    read->state = read->state == READING ? ABANDONED : VACANT;
}

static struct read *find(struct read_pool *pool, int fd, uint64_t offset, uint64_t bytes)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        struct read *read = &pool->reads[i];
        if ((read->state == QUEUED || read->state == READING || read->state == DONE) && !read->hint && read->fd == fd &&
            read->offset == offset && read->bytes == bytes)
            return read;
    }
    return NULL;
}

void read_pool_ask(struct read_pool *pool, int fd, uint64_t offset, uint64_t bytes)
{
    if (bytes > pool->buffer_bytes)
        return;
    os_mutex_lock(pool->mutex);
    struct read *known = find(pool, fd, offset, bytes);
    if (known) {
        known->others++;
    } else if (!queue(pool, fd, offset, bytes, ++pool->number)) {
        /* The oldest read that ended was not needed, or it would have been taken. */
        struct read *oldest = NULL;
        for (uint32_t i = 0; i < pool->count; i++)
            if (pool->reads[i].state == DONE && (!oldest || pool->reads[i].number < oldest->number))
                oldest = &pool->reads[i];
        if (oldest && oldest->number + pool->count < pool->number) {
            give_up(pool, oldest);
            (void)queue(pool, fd, offset, bytes, pool->number);
        }
    }
    os_mutex_unlock(pool->mutex);
}

void read_pool_hint(struct read_pool *pool, int fd, uint64_t offset, uint64_t bytes)
{
    os_mutex_lock(pool->mutex);
    struct read *read = queue(pool, fd, offset, bytes, ++pool->number);
    if (read)
        read->hint = true;
    os_mutex_unlock(pool->mutex);
}

/* Gives up the reads of one file, or with -1 of all files. */
static void forget(struct read_pool *pool, int fd)
{
    os_mutex_lock(pool->mutex);
    for (uint32_t i = 0; i < pool->count; i++)
        if (pool->reads[i].state != VACANT && pool->reads[i].state != ABANDONED && (fd < 0 || pool->reads[i].fd == fd))
            give_up(pool, &pool->reads[i]);
    os_mutex_unlock(pool->mutex);
}

void read_pool_forget(struct read_pool *pool)
{
    forget(pool, -1);
}

void read_pool_forget_file(struct read_pool *pool, int fd)
{
    forget(pool, fd);
}

/* Waits for some read to end. Returns false if the time `until` has come. The mutex is locked. */
static bool wait_until(struct read_pool *pool, uint64_t until)
{
    if (!pool->deadline_ns) {
        os_condition_wait(pool->done, pool->mutex);
        return true;
    }
    const uint64_t now = os_clock_ns();
    if (now >= until)
        return false;
    (void)os_condition_wait_for(pool->done, pool->mutex, until - now);
    return true;
}

/* Waits for a read and takes its result. The mutex is locked. */
static int take(struct read_pool *pool, struct read *read, void *into, size_t *got, uint64_t until)
{
    const uint64_t number = read->number;
    read->number = 0; /* the next that is begun */
    while (read->state != DONE)
        if (!wait_until(pool, until)) {
            give_up(pool, read);
            return ETIMEDOUT;
        }
    const int system = read->system;
    *got = read->got;
    memcpy(into, read->buffer, read->got);
    read->number = number;
    if (system || !read->others--)
        give_up(pool, read);
    return system;
}

static uint64_t deadline_of(const struct read_pool *pool)
{
    return os_clock_ns() + min64(pool->deadline_ns, UINT64_MAX / 2);
}

static void count_timeout(struct read_pool *pool, int system)
{
    if (system == ETIMEDOUT)
        __atomic_store_n(&pool->timeouts, pool->timeouts + 1, __ATOMIC_RELAXED);
}

bool read_pool_take(struct read_pool *pool, int fd, void *into, uint64_t bytes, uint64_t offset, size_t *got,
                    int *system)
{
    *got = 0;
    *system = 0;
    os_mutex_lock(pool->mutex);
    struct read *read = find(pool, fd, offset, bytes);
    if (read) {
        *system = take(pool, read, into, got, deadline_of(pool));
        __atomic_store_n(&pool->ahead, pool->ahead + 1, __ATOMIC_RELAXED);
        count_timeout(pool, *system);
    }
    os_mutex_unlock(pool->mutex);
    return read != NULL;
}

/* Reads at most a buffer. The mutex is locked. */
static int read_part(struct read_pool *pool, int fd, void *into, uint64_t bytes, uint64_t offset, size_t *got,
                     uint64_t until)
{
    struct read *read = find(pool, fd, offset, bytes);
    while (!read) {
        read = queue(pool, fd, offset, bytes, 0);
        if (read)
            break;
        /* The pages that were asked for last make room for those that are needed now. */
        struct read *last = NULL;
        for (uint32_t i = 0; i < pool->count; i++)
            if ((pool->reads[i].state == QUEUED || pool->reads[i].state == DONE) &&
                (!last || pool->reads[i].number > last->number))
                last = &pool->reads[i];
        if (last)
            give_up(pool, last);
        else if (!wait_until(pool, until))
            return ETIMEDOUT;
    }
    return take(pool, read, into, got, until);
}

int read_pool_read(struct read_pool *pool, int fd, void *into, uint64_t bytes, uint64_t offset, size_t *got)
{
    int system = 0;
    *got = 0;
    if (!pool->deadline_ns)
        return os_pread(fd, into, bytes, offset, got);
    os_mutex_lock(pool->mutex);
    const uint64_t until = deadline_of(pool);
    while (!system && *got < bytes) {
        const uint64_t part = min64(bytes - *got, pool->buffer_bytes);
        size_t more = 0;
        system = read_part(pool, fd, (uint8_t *)into + *got, part, offset + *got, &more, until);
        *got += more;
        if (more < part)
            break; /* a failure, or the end of the file */
    }
    count_timeout(pool, system);
    os_mutex_unlock(pool->mutex);
    return system;
}

void read_pool_ask_stat(struct read_pool *pool, int fd)
{
    read_pool_ask(pool, fd, STAT_AT, sizeof(struct os_stat));
}

int read_pool_take_stat(struct read_pool *pool, int fd, struct os_stat *found)
{
    size_t got;
    os_mutex_lock(pool->mutex);
    struct read *read = find(pool, fd, STAT_AT, sizeof *found);
    const int system = !read ? ENOENT : read->state != DONE ? EAGAIN : take(pool, read, found, &got, 0);
    os_mutex_unlock(pool->mutex);
    return system;
}

void read_pool_counts(const struct read_pool *pool, struct read_pool_counts *counts)
{
    counts->threads = pool->threads;
    counts->ahead = __atomic_load_n(&pool->ahead, __ATOMIC_RELAXED);
    counts->timeouts = __atomic_load_n(&pool->timeouts, __ATOMIC_RELAXED);
}
