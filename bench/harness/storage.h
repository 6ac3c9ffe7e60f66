/* SPDX-License-Identifier: MIT */
/*
 * storage.h - what storage and the page cache do: bringing a dataset's tokens into the cache, removing them from it,
 * and reading past it at the storage's own rate.
 */
#ifndef TOKMAP_BENCH_HARNESS_STORAGE_H
#define TOKMAP_BENCH_HARNESS_STORAGE_H

#include "harness.h"

/* Drops the tokens of all shards from the page cache and checks with a sample of pages that they are gone. Fails on a
 * file system that keeps its files in memory (tmpfs), and if another process keeps the pages by mapping the files. A
 * kernel that cannot report which pages are cached is trusted. Shards in object storage are left as they are, here and
 * below. */
void page_cache_drop(struct bench *bench, const struct tokmap_dataset *dataset);
/* Does the same without a message, for a case that can go on if the tokens cannot be dropped. Statuses: OK,
 * ERROR_UNSUPPORTED (the files are in memory), ERROR_BUSY (another process has them mapped), ERROR_IO, and others of
 * opening files. */
enum tokmap_status page_cache_try_drop(const struct tokmap_dataset *dataset, struct tokmap_error *error);

/* Drops the tokens, then reads them from front to back, so that the kernel caches them in large folios. Pages that were
 * cached one by one, by random reads, are up to a third slower to read, and the results would depend on what the
 * machine did before. A dataset of more than half of the memory is left as it is, with a message. Call this before the
 * files are mapped: mapped pages cannot be dropped. */
void page_cache_warm(struct bench *bench, const struct tokmap_dataset *dataset);
/* Reads a file from front to back, so that it is in the page cache. Some systems drop what was not used for a while. */
void page_cache_read(struct bench *bench, const char *path);

/* ==== reads past the page cache ==== */

/*
 * The limit of loading from cold storage: reads of given byte ranges with O_DIRECT by a pool of threads, each of which
 * has one read in flight. The bytes that are read are thrown away.
 */

struct byte_range {
    uint64_t offset, bytes; /* multiples of the page size; bytes is at most DIRECT_READ_MOST */
};

#define DIRECT_READ_MOST ((uint64_t)1 << 20)

struct direct_pool;

/* Opens the file with O_DIRECT and starts `depth` threads. Returns 0 or an errno; EINVAL means that the file system
 * does not support O_DIRECT. *pool is NULL after a failure. */
int direct_pool_new(struct direct_pool **pool, const char *path, uint32_t depth);
/* Stops the threads and closes the file. Accepts NULL. */
void direct_pool_free(struct direct_pool *pool);

/* Reads all ranges and waits for the last one. The threads take the ranges in order. Sets *seconds to the time that
 * this took. Returns 0, or the errno of a read that failed. One thread at a time may call this. */
int direct_pool_read(struct direct_pool *pool, const struct byte_range *ranges, uint64_t count, double *seconds);

/* Returns the smallest range of whole pages that contains the bytes [offset, offset + bytes) of a file. */
struct byte_range page_span(uint64_t offset, uint64_t bytes);

#endif
