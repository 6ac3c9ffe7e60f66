/* SPDX-License-Identifier: MIT */
/*
 * direct_reads.h - the limit of loading from cold storage: reads of given byte ranges with O_DIRECT by a pool of
 * threads, each of which has one read in flight. The bytes that are read are thrown away.
 */
#ifndef TOKMAP_BENCH_HARNESS_DIRECT_READS_H
#define TOKMAP_BENCH_HARNESS_DIRECT_READS_H

#include "harness.h"

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
