/* SPDX-License-Identifier: MIT */
/*
 * shard_pieces.c - see shard_pieces.h.
 *
 * Pieces are hashed and written while they are in the cache. A piece that is complete in the caller's memory is written
 * from there; otherwise it is collected in a buffer. A block never ends inside a piece, and every write except the last
 * one writes a whole piece. What was written is stored and leaves the page cache meanwhile (write_behind.h), unless the
 * tokens will be read again, to be sealed.
 *
 * The second thread takes the pieces from a ring. `passed` counts those that the caller has filled, `done` those that
 * the thread has written. Each place of the ring has memory for a piece: the caller exchanges its full buffer for the
 * empty one of the next place.
 *
 * Example with 4 places: 6 pieces are passed, and 3 are done. The thread writes that of place 3; pieces 4 and 5 wait in
 * places 0 and 1; place 2 has the buffer that the caller gets for its next full one. With that all places are taken,
 * and with the one after it the caller waits.
 *
 * After a failure the thread takes the pieces and drops them. The next call of the caller returns the failure, and its
 * writer never commits.
 */
#include "shard_pieces.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "platform/os.h"

#define RING 8

struct shard_pieces {
    struct shard_writer *writer;
    struct os_thread *thread;
    uint8_t *ring[RING];
    struct os_mutex *mutex; /* guards all fields below */
    struct os_condition *filled, *emptied;
    uint64_t passed, done;
    int system; /* errno of the first failure */
    bool ended;
};

/* ---- a piece ---- */

int shard_pieces_end_block(struct shard_writer *writer)
{
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
    assert(count <= PIECE_BYTES && writer->block_filled < BLOCK_BYTES && writer->behind.asked <= writer->written);
    int system = writer->holes ? 0 : hash_pages(writer, bytes, count);
    for (size_t done = 0; done < count && !system;) {
        size_t part = (size_t)min64(count - done, BLOCK_BYTES - writer->block_filled);
        hash_state_add(writer->block, bytes + done, part);
        writer->block_filled += part;
        if (writer->block_filled == BLOCK_BYTES)
            system = shard_pieces_end_block(writer);
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
    struct shard_pieces *pieces = user;
    os_mutex_lock(pieces->mutex);
    for (;;) {
        while (pieces->passed == pieces->done && !pieces->ended)
            os_condition_wait(pieces->filled, pieces->mutex);
        if (pieces->ended)
            break;
        const uint8_t *piece = pieces->ring[pieces->done % RING];
        const bool failed = pieces->system != 0;
        os_mutex_unlock(pieces->mutex);
        const int system = failed ? 0 : emit(pieces->writer, piece, PIECE_BYTES);
        os_mutex_lock(pieces->mutex);
        pieces->system = system ? system : pieces->system;
        pieces->done++;
        os_condition_signal(pieces->emptied);
    }
    os_mutex_unlock(pieces->mutex);
}

void shard_pieces_free(struct shard_writer *writer)
{
    struct shard_pieces *pieces = writer->pieces;
    if (!pieces)
        return;
    if (pieces->thread) {
        os_mutex_lock(pieces->mutex);
        pieces->ended = true;
        os_condition_signal(pieces->filled);
        os_mutex_unlock(pieces->mutex);
        os_thread_join(pieces->thread);
    }
    for (size_t i = 0; i < RING; i++)
        free(pieces->ring[i]);
    os_condition_free(pieces->emptied);
    os_condition_free(pieces->filled);
    os_mutex_free(pieces->mutex);
    free(pieces);
    writer->pieces = NULL;
}

/* Starts the thread. If that fails, it is not tried again. */
static void thread_start(struct shard_writer *writer)
{
    struct shard_pieces *pieces = writer->pieces = calloc(1, sizeof *pieces);
    bool complete = pieces && !os_mutex_new(&pieces->mutex) && !os_condition_new(&pieces->filled) &&
                    !os_condition_new(&pieces->emptied);
    for (size_t i = 0; i < RING && complete; i++)
        complete = (pieces->ring[i] = malloc(PIECE_BYTES)) != NULL;
    if (complete) {
        pieces->writer = writer;
        if (os_thread_start(&pieces->thread, "tokmap-write", thread_run, pieces)) {
            pieces->thread = NULL;
            complete = false;
        }
    }
    if (complete)
        return;
    shard_pieces_free(writer);
    writer->options.own_thread = false;
}

/* Exchanges the full buffer for an empty one. */
static int buffer_pass(struct shard_writer *writer)
{
    struct shard_pieces *pieces = writer->pieces;
    os_mutex_lock(pieces->mutex);
    while (pieces->passed - pieces->done == RING)
        os_condition_wait(pieces->emptied, pieces->mutex);
    const int system = pieces->system;
    uint8_t **place = &pieces->ring[pieces->passed++ % RING], *empty = *place;
    *place = writer->buffer;
    writer->buffer = empty;
    writer->buffered = 0;
    os_condition_signal(pieces->filled);
    os_mutex_unlock(pieces->mutex);
    return system;
}

int shard_pieces_wait(struct shard_writer *writer)
{
    struct shard_pieces *pieces = writer->pieces;
    if (!pieces)
        return 0;
    os_mutex_lock(pieces->mutex);
    while (pieces->passed != pieces->done)
        os_condition_wait(pieces->emptied, pieces->mutex);
    const int system = pieces->system;
    os_mutex_unlock(pieces->mutex);
    return system;
}

/* ---- pieces ---- */

/* Writes what is in the buffer. */
static int buffer_emit(struct shard_writer *writer)
{
    const size_t count = writer->buffered;
    writer->buffered = 0;
    return count ? emit(writer, writer->buffer, count) : 0;
}

static int buffer_full(struct shard_writer *writer)
{
    if (writer->options.own_thread && !writer->pieces)
        thread_start(writer);
    return writer->pieces ? buffer_pass(writer) : buffer_emit(writer);
}

/* Writes only whole pieces until the last flush. The kernel stores aligned pieces in large pages, which takes half
 * the time of writing the same bytes in calls that begin and end anywhere. */
int shard_pieces_add(struct shard_writer *writer, const uint8_t *bytes, uint64_t count)
{
    int system = 0;
    while (count && !system) {
        size_t part = (size_t)min64(count, PIECE_BYTES - writer->buffered);
        if (part == PIECE_BYTES && !writer->options.own_thread) {
            system = emit(writer, bytes, part);
        } else {
            memcpy(writer->buffer + writer->buffered, bytes, part);
            writer->buffered += part;
            if (writer->buffered == PIECE_BYTES)
                system = buffer_full(writer);
        }
        bytes += part;
        count -= part;
    }
    return system;
}

int shard_pieces_flush(struct shard_writer *writer)
{
    const int system = shard_pieces_wait(writer);
    return system ? system : buffer_emit(writer);
}
