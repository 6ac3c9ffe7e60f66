/* SPDX-License-Identifier: MIT */
/*
 * series.h - measured values and their statistics: one value for each repeat (series), one for each call (samples), and
 * the percentiles of the calls, one for each repeat (spread).
 *
 * None of these functions may be called on the same object by two threads at once.
 */
#ifndef TOKMAP_BENCH_HARNESS_SERIES_H
#define TOKMAP_BENCH_HARNESS_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- series: one value for each repeat ---- */

#define SERIES_MOST 1000

struct series {
    double values[SERIES_MOST];
    size_t count;
};

/* Appends a value. Values beyond SERIES_MOST are dropped. */
void series_add(struct series *series, double value);
/* Return NAN if the series is empty. */
double series_median(const struct series *series);
double series_smallest(const struct series *series);
double series_largest(const struct series *series);
double series_last(const struct series *series);
/* Returns the series with the largest median among the `count` series in list; the first one if all are empty. */
const struct series *series_worst(const struct series *list, size_t count);

/* ---- samples: one value for each call, in nanoseconds ---- */

struct samples {
    uint32_t *ns; /* 2^32 - 1 (4.29 s) stands for this and any longer time */
    size_t count, capacity;
    bool sorted;
};

/* Allocates memory for `capacity` samples and touches it, so that no call pays for a page fault while it is timed.
 * Returns false if there is not enough memory. */
bool samples_new(struct samples *samples, size_t capacity);
/* Accepts samples that are all zeros. */
void samples_free(struct samples *samples);
void samples_clear(struct samples *samples);
/* Appends a time. Times beyond the capacity are dropped. */
static inline void samples_add(struct samples *samples, uint64_t ns)
{
    if (samples->count < samples->capacity)
        samples->ns[samples->count++] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}
/* Returns the smallest sample that is not exceeded by at least `share` (0 to 1) of all samples, or 0 without samples.
 * Sorts the samples at the first call. */
double samples_at(struct samples *samples, double share);

/* ---- spread: the percentiles of each repeat ---- */

struct spread {
    struct series p50, p99, p999, largest;
};

/* Adds the percentiles of one repeat's samples, divided by unit_ns (1000 for microseconds). */
void spread_add(struct spread *spread, struct samples *samples, double unit_ns);

#endif
