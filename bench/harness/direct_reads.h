/*
 * direct_reads.h - the limit of cold loading: reads of given ranges with O_DIRECT, `depth` of them under way at a time,
 * by a pool of as many threads. Nothing is kept of what is read.
 */
#ifndef TOKMAP_BENCH_HARNESS_DIRECT_READS_H
#define TOKMAP_BENCH_HARNESS_DIRECT_READS_H

#include "harness.h"

struct byte_range {
    uint64_t offset, bytes; /* multiples of the page; bytes at most DIRECT_READ_MOST */
};
#define DIRECT_READ_MOST ((uint64_t)1 << 20)

struct direct_pool;

/* Opens the file with O_DIRECT and starts the threads. 0 or an errno; EINVAL: its file system has no O_DIRECT. */
int direct_pool_new(struct direct_pool **pool, const char *path, uint32_t depth);
void direct_pool_free(struct direct_pool *pool); /* accepts NULL */

/* Reads all ranges, in order as far as a pool does. *seconds: from start to the last one's end. 0 or an errno. */
int direct_pool_read(struct direct_pool *pool, const struct byte_range *ranges, uint64_t count, double *seconds);

/* The pages that hold [offset, offset + bytes) of a file, as one range. */
struct byte_range page_span(uint64_t offset, uint64_t bytes);

#endif
