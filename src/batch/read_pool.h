/* SPDX-License-Identifier: MIT */
/*
 * read_pool.h - threads that read files for one loader: ahead of it, where the storage is so slow that many reads must
 * be under way at once, and on its behalf, where a read may never return and the loader has a deadline.
 *
 * A thread that hangs in the kernel cannot be stopped. So no thread waits for it: a read that misses its deadline is
 * abandoned with its buffer, and closing a pool leaves threads that hang to themselves; the last of them frees the
 * memory. If the storage recovers, the threads work again.
 *
 * One thread at a time may use a pool; the counts may be read by any thread. Only opening a pool allocates memory.
 */
#ifndef TOKMAP_BATCH_READ_POOL_H
#define TOKMAP_BATCH_READ_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/os.h"
#include "tokmap/tokmap.h"

struct read_pool;

struct read_pool_options {
    uint32_t threads;      /* at least 1 */
    uint32_t buffers;      /* reads that may be asked for and not yet taken, at least 1 */
    uint64_t buffer_bytes; /* the largest read that can be asked for, at least 1 */
    uint64_t deadline_ns;  /* 0: none */
};

/* Statuses: OK, ERROR_MEMORY, ERROR_IO (a thread could not be started). */
enum tokmap_status read_pool_open(struct read_pool **pool, const struct read_pool_options *options,
                                  struct tokmap_error *error);
/* Waits for no read, but 0.1 s for a stat. The files of reads that are under way may be closed after it. Accepts NULL.
 */
void read_pool_close(struct read_pool *pool);

/* Asks for `bytes` bytes at `offset` to be read ahead. What is asked for twice is read once, and can be taken twice.
 * Does nothing if no buffer is vacant or if the read is larger than a buffer. */
void read_pool_ask(struct read_pool *pool, int fd, uint64_t offset, uint64_t bytes);
/* Has the pool's threads ask the kernel to read these bytes ahead, which can wait, too, where the storage hangs. Does
 * nothing if no buffer is vacant. */
void read_pool_hint(struct read_pool *pool, int fd, uint64_t offset, uint64_t bytes);
/* Forgets what was asked for and not read. */
void read_pool_forget(struct read_pool *pool);
/* Forgets what was asked for with one descriptor, which is another file's from now on. */
void read_pool_forget_file(struct read_pool *pool, int fd);

/* Takes what was asked for with the same fd, offset, and bytes, and waits until it is read. Returns false if it was not
 * asked for. *got is the number of bytes, as of os_pread(). *system receives 0, an errno, or ETIMEDOUT if the deadline
 * has passed. */
bool read_pool_take(struct read_pool *pool, int fd, void *into, uint64_t bytes, uint64_t offset, size_t *got,
                    int *system);

/* Reads like os_pread(), by the pool's threads if there is a deadline, else by the calling thread. Returns 0, an errno,
 * or ETIMEDOUT if the deadline has passed. */
int read_pool_read(struct read_pool *pool, int fd, void *into, uint64_t bytes, uint64_t offset, size_t *got);
/* Asks for what os_fstat() says of a file, which can wait, too, where the storage hangs; and takes it, without waiting:
 * returns 0, an errno of os_fstat(), EAGAIN if it is not there yet, or ENOENT if it was not asked for, or given up. */
void read_pool_ask_stat(struct read_pool *pool, int fd);
int read_pool_take_stat(struct read_pool *pool, int fd, struct os_stat *found);

/* Counts of what a pool has done so far. Any thread. */
struct read_pool_counts {
    uint64_t threads;
    uint64_t ahead; /* reads that were asked for and taken */
    uint64_t timeouts;
};
void read_pool_counts(const struct read_pool *pool, struct read_pool_counts *counts);

#endif
