/* SPDX-License-Identifier: MIT */
/*
 * histogram.h - counts of numbers of any size, for percentiles in bounded memory.
 *
 * The histogram has one cell for each number below 65,536. Above, a cell covers 2^-9 of a power of two, so a percentile
 * is exact up to there and at most 0.2% too large beyond. Count, sum, and the largest number are exact. A histogram
 * has 720 KiB.
 */
#ifndef TOKMAP_ENCODE_HISTOGRAM_H
#define TOKMAP_ENCODE_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes_buffer.h"

struct histogram {
    uint64_t *cells;
    uint64_t count, largest;
    unsigned __int128 sum;
};

/* Makes an empty histogram; histogram_free() frees it. Returns false if there is no memory. */
bool histogram_new(struct histogram *histogram);
void histogram_free(struct histogram *histogram); /* accepts one that is all zero */

/* Counts a number `times` times. */
void histogram_add(struct histogram *histogram, uint64_t number, uint64_t times);
/* Counts `count` differences: ends[0] - begin, ends[1] - ends[0], and so on. The ends never decrease, and the first one
 * is at least `begin`. This is faster than one call for each. */
void histogram_add_steps(struct histogram *histogram, uint64_t begin, const uint64_t *ends, uint64_t count);
/* Adds what *more has counted to *sum, for example what several threads have counted. */
void histogram_merge(struct histogram *sum, const struct histogram *more);
/* Returns the smallest number that is at least as large as per_thousand / 1000 of the counted ones: 500 for the median.
 * 0 if nothing was counted. */
uint64_t histogram_percentile(const struct histogram *histogram, uint64_t per_thousand);

/* Appends all that is not 0 as pairs of u64, a cell and its count. Returns false without memory. */
bool histogram_save(const struct histogram *histogram, struct bytes_buffer *into);
/* Takes such pairs, which replace what the histogram has, all of them or some. Returns false if they are no pairs of a
 * histogram. */
bool histogram_load(struct histogram *histogram, const uint8_t *bytes, size_t count);

/* The lengths of documents, in tokens. */
struct lengths {
    uint64_t documents; /* of which the numbers are; 0: all numbers are 0 */
    uint64_t p50, p90, p99, largest;
    double mean;
};

/* Computes the figures of a histogram of lengths. */
void lengths_of(const struct histogram *histogram, struct lengths *lengths);

#endif
