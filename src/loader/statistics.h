/* SPDX-License-Identifier: MIT */
/*
 * statistics.h - the counters of a loader and of its sources, and its alarm. One thread writes them, the one that calls
 * next(); any thread may read them. A reader may see counters of different moments, but never half a number.
 */
#ifndef TOKMAP_LOADER_STATISTICS_H
#define TOKMAP_LOADER_STATISTICS_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

/* The members have the meaning of the same members of struct tokmap_source_stats. */
struct source_counts {
    uint64_t rows, tokens, epoch;
    uint64_t bytes; /* by gathers that are closed */
};

/* The members have the meaning of the same members of struct tokmap_stats; ready_lowest is its ring_ready_lowest. */
struct statistics {
    uint64_t batches, rows, tokens, padding;
    uint64_t excluded, excluded_rows;
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

/* Counts what excluded documents took out of such a batch. */
void statistics_excluded(struct statistics *statistics, uint64_t tokens, uint64_t rows);

/* Reports how many slots were filled when next() was called. Only after the ring was full for the first time. */
void statistics_ready(struct statistics *statistics, uint32_t ready);

/* Fills the members of *out that are counted here, and leaves the others unchanged. Any thread. */
void statistics_read(const struct statistics *statistics, struct tokmap_stats *out);
void statistics_read_source(const struct statistics *statistics, uint64_t source, struct tokmap_source_stats *out);

/* ---- alarms ---- */

/* When options.alarm is called: calls of next() are counted in groups of alarm_calls. A group in which
 * alarm_percent percent or more had to wait raises the alarm, unless the group before it did, too. Used by the thread
 * that calls next(). */
struct stalls {
    bool opened;                      /* the first call, which finds an empty ring, was passed */
    bool above;                       /* the last group was above the threshold */
    uint64_t calls, stalled, wait_ns; /* of the group at hand */
    uint64_t alarms;                  /* raised; accessed atomically */
};

/* Counts a call that delivered a batch of `step`, and that waited `ns` for its slot (0: it was filled). Returns true,
 * and fills *stall, if the alarm is raised. */
bool stalls_count(struct stalls *stalls, const struct tokmap_loader_options *options, uint64_t step, uint64_t ns,
                  struct tokmap_stall *stall);

/* Notes that the ring is empty again, because the loader has moved: the next call is passed. */
void stalls_restart(struct stalls *stalls);

#endif
