/* statistics.h - the counters of a loader. Each is written by one thread and read by any. */
#ifndef TOKMAP_LOADER_STATISTICS_H
#define TOKMAP_LOADER_STATISTICS_H

#include "tokmap/tokmap.h"

/* Written by the thread that calls next(). */
struct statistics {
    uint64_t batches, rows, tokens;
    uint64_t epoch;
    uint64_t waits, wait_ns, wait_ns_largest;
    uint64_t wait_histogram[TOKMAP_WAIT_BUCKETS];
    uint32_t ready_lowest;
};

void statistics_wait(struct statistics *statistics, uint64_t ns);
void statistics_batch(struct statistics *statistics, const struct tokmap_batch *batch);
/* Slots ready when next() came, after the ring had been full once. */
void statistics_ready(struct statistics *statistics, uint32_t ready);
/* Fills what of *out is counted here. */
void statistics_read(const struct statistics *statistics, struct tokmap_stats *out);

#endif
