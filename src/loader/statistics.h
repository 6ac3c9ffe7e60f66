/*
 * statistics.h - the counters of a loader and of its sources. One thread writes them, the one that calls next(); any
 * thread may read them. A reader may see counters of different moments, but never half a number.
 */
#ifndef TOKMAP_LOADER_STATISTICS_H
#define TOKMAP_LOADER_STATISTICS_H

#include "tokmap/tokmap.h"

/* The members have the meaning of the same members of struct tokmap_source_stats. */
struct source_counts {
    uint64_t rows, tokens, epoch;
    uint64_t bytes; /* by gathers that are closed */
};

/* The members have the meaning of the same members of struct tokmap_stats; ready_lowest is its ring_ready_lowest. */
struct statistics {
    uint64_t batches, rows, tokens, padding;
    uint64_t epoch;
    uint64_t step; /* of the loader's cursor */
    uint64_t waits, wait_ns, wait_ns_largest;
    uint64_t wait_histogram[TOKMAP_WAIT_BUCKETS];
    uint32_t ready_lowest;
    struct source_counts *sources; /* one for each source of the run; owned by the loader */
    /* Counted by what was closed when the loader moved. */
    struct {
        uint64_t bytes, cold_reads, host_expanded, late_copies, timeouts, io_reads;
    } before;
};

/* Counts a call of next() that waited `ns` for its slot; 0: the slot was filled. */
void statistics_wait(struct statistics *statistics, uint64_t ns);

/* Reports the step of the loader's cursor. */
void statistics_at(struct statistics *statistics, uint64_t step);

/* Counts a batch that was delivered. */
void statistics_batch(struct statistics *statistics, const struct tokmap_batch *batch);

/* Reports how many slots were filled when next() was called. Only after the ring was full for the first time. */
void statistics_ready(struct statistics *statistics, uint32_t ready);

/* Fills the members of *out that are counted here, and leaves the others unchanged. Any thread. */
void statistics_read(const struct statistics *statistics, struct tokmap_stats *out);
void statistics_read_source(const struct statistics *statistics, uint64_t source, struct tokmap_source_stats *out);

#endif
