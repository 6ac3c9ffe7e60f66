/* SPDX-License-Identifier: MIT */
/*
 * shard_slabs.c - see shard_slabs.h.
 *
 * Slabs are hashed and written while they are in the cache. A slab that is complete in the caller's memory is written
 * from there; otherwise it is collected in a buffer. A block never ends inside a slab, and every write except the last
 * one writes a whole slab. What was written is stored and leaves the page cache meanwhile (write_behind.h), unless the
 * tokens will be read again, to be sealed.
 *
 * The second thread takes the slabs from a ring. `passed` counts those that the caller has filled, `done` those that
 * the thread has written. Each place of the ring has memory for a slab: the caller exchanges its full buffer for the
 * empty one of the next place.
 *
 * Example with 4 places: 6 slabs are passed, and 3 are done. The thread writes that of place 3; slabs 4 and 5 wait in
 * places 0 and 1; place 2 has the buffer that the caller gets for its next full one. With that all places are taken,
 * and with the one after it the caller waits.
 *
 * After a failure the thread takes the slabs and drops them. The next call of the caller returns the failure, and its
 * writer never commits.
 */
#include "shard_slabs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "platform/os.h"

#define RING 8

struct shard_slabs {
    struct shard_writer *writer;
    struct os_thread *thread;
    uint8_t *ring[RING];
    struct os_mutex *mutex; /* guards all fields below */
    struct os_condition *filled, *emptied;
    uint64_t passed, done;
    int system; /* errno of the first failure */
    bool ended;
};

/* ---- a slab ---- */

int shard_slabs_end_block(struct shard_writer *writer)
{
    assert(writer->block_filled);
    uint64_t hash = hash_state_64(writer->block);
    hash_state_reset(writer->block);
    writer->block_filled = 0;
    return spill_add(&writer->block_spill, &hash, sizeof hash);
}

/* Hashes the pages of bytes that begin with a page. Only the last page of a shard may be shorter. */
static int hash_pages(struct shard_writer *writer, const uint8_t *bytes, size_t count)
{
    uint32_t hashes[64];
    size_t filled = 0;
    int system = 0;
    assert(writer->written % TOKEN_PAGE_BYTES == 0);
    for (size_t done = 0; done < count && !system; done += TOKEN_PAGE_BYTES) {
        hashes[filled++] = (uint32_t)hash64(bytes + done, (size_t)min64(count - done, TOKEN_PAGE_BYTES));
        if (filled == sizeof hashes / sizeof hashes[0] || count - done <= TOKEN_PAGE_BYTES) {
            system = spill_add(&writer->page_spill, hashes, filled * sizeof hashes[0]);
            filled = 0;
        }
    }
    return system;
}

/* Hashes bytes and writes them at the end of the file. */
static int emit(struct shard_writer *writer, const uint8_t *bytes, size_t count)
{
    assert(count <= SLAB_BYTES && writer->block_filled < BLOCK_BYTES && writer->behind.asked <= writer->written);
    int system = writer->holes ? 0 : hash_pages(writer, bytes, count);
    for (size_t done = 0; done < count && !system;) {
        size_t part = (size_t)min64(count - done, BLOCK_BYTES - writer->block_filled);
        hash_state_add(writer->block, bytes + done, part);
        writer->block_filled += part;
        if (writer->block_filled == BLOCK_BYTES)
            system = shard_slabs_end_block(writer);
        done += part;
    }
    if (!system)
        system = os_pwrite(writer->tokens_fd, bytes, count, writer->written);
    writer->written += count;
    if (!system && writer->options.sync && !writer->options.seal)
        write_behind(&writer->behind, writer->tokens_fd, writer->written);
    return system;
}

/* ---- the second thread ---- */

static void thread_run(void *user)
{
    struct shard_slabs *slabs = user;
    os_mutex_lock(slabs->mutex);
    for (;;) {
        while (slabs->passed == slabs->done && !slabs->ended)
            os_condition_wait(slabs->filled, slabs->mutex);
        if (slabs->ended)
            break;
        const uint8_t *slab = slabs->ring[slabs->done % RING];
        const bool failed = slabs->system != 0;
        os_mutex_unlock(slabs->mutex);
        const int system = failed ? 0 : emit(slabs->writer, slab, SLAB_BYTES);
        os_mutex_lock(slabs->mutex);
        slabs->system = system ? system : slabs->system;
        slabs->done++;
        os_condition_signal(slabs->emptied);
    }
    os_mutex_unlock(slabs->mutex);
}

void shard_slabs_free(struct shard_writer *writer)
{
    struct shard_slabs *slabs = writer->slabs;
    if (!slabs)
        return;
    if (slabs->thread) {
        os_mutex_lock(slabs->mutex);
        slabs->ended = true;
        os_condition_signal(slabs->filled);
        os_mutex_unlock(slabs->mutex);
        os_thread_join(slabs->thread);
    }
    for (size_t i = 0; i < RING; i++)
        free(slabs->ring[i]);
    os_condition_free(slabs->emptied);
    os_condition_free(slabs->filled);
    os_mutex_free(slabs->mutex);
    free(slabs);
    writer->slabs = NULL;
}

/* Starts the thread. If that fails, it is not tried again. */
static void thread_start(struct shard_writer *writer)
{
    struct shard_slabs *slabs = writer->slabs = calloc(1, sizeof *slabs);
    bool complete = slabs && !os_mutex_new(&slabs->mutex) && !os_condition_new(&slabs->filled) &&
                    !os_condition_new(&slabs->emptied);
    for (size_t i = 0; i < RING && complete; i++)
        complete = (slabs->ring[i] = malloc(SLAB_BYTES)) != NULL;
    if (complete) {
        slabs->writer = writer;
        if (os_thread_start(&slabs->thread, "tokmap-write", thread_run, slabs)) {
            slabs->thread = NULL;
            complete = false;
        }
    }
    if (complete)
        return;
    shard_slabs_free(writer);
    writer->options.own_thread = false;
}

/* Exchanges the full buffer for an empty one. */
static int buffer_pass(struct shard_writer *writer)
{
    struct shard_slabs *slabs = writer->slabs;
    os_mutex_lock(slabs->mutex);
    while (slabs->passed - slabs->done == RING)
        os_condition_wait(slabs->emptied, slabs->mutex);
    const int system = slabs->system;
    uint8_t **place = &slabs->ring[slabs->passed++ % RING], *empty = *place;
    *place = writer->buffer;
    writer->buffer = empty;
    writer->buffered = 0;
    os_condition_signal(slabs->filled);
    os_mutex_unlock(slabs->mutex);
    return system;
}

int shard_slabs_wait(struct shard_writer *writer)
{
    struct shard_slabs *slabs = writer->slabs;
    if (!slabs)
        return 0;
    os_mutex_lock(slabs->mutex);
    while (slabs->passed != slabs->done)
        os_condition_wait(slabs->emptied, slabs->mutex);
    const int system = slabs->system;
    os_mutex_unlock(slabs->mutex);
    return system;
}

/* ---- slabs ---- */

/* Writes what is in the buffer. */
static int buffer_emit(struct shard_writer *writer)
{
    const size_t count = writer->buffered;
    writer->buffered = 0;
    return count ? emit(writer, writer->buffer, count) : 0;
}

static int buffer_full(struct shard_writer *writer)
{
    if (writer->options.own_thread && !writer->slabs)
        thread_start(writer);
    return writer->slabs ? buffer_pass(writer) : buffer_emit(writer);
}

/* Writes only whole slabs until the last flush. The kernel stores aligned slabs in large pages, which takes half
 * the time of writing the same bytes in calls that begin and end anywhere. */
int shard_slabs_add(struct shard_writer *writer, const uint8_t *bytes, uint64_t count)
{
    int system = 0;
    while (count && !system) {
        size_t part = (size_t)min64(count, SLAB_BYTES - writer->buffered);
        if (part == SLAB_BYTES && !writer->options.own_thread) {
            system = emit(writer, bytes, part);
        } else {
            memcpy(writer->buffer + writer->buffered, bytes, part);
            writer->buffered += part;
            if (writer->buffered == SLAB_BYTES)
                system = buffer_full(writer);
        }
        bytes += part;
        count -= part;
    }
    return system;
}

int shard_slabs_flush(struct shard_writer *writer)
{
    const int system = shard_slabs_wait(writer);
    return system ? system : buffer_emit(writer);
}
