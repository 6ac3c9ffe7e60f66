/*
 * length_counts.h - how long the documents are: counts of lengths, from which any percentile can be read.
 *
 * Lengths below 4096 are counted one by one. A longer length loses its low bits: it is counted with its first 12 binary
 * digits, so that it is rounded down by less than 1/2048. Therefore, the memory does not grow with the lengths or the
 * number of documents, and counts of several threads can be added up.
 */
#ifndef TOKMAP_PACK_LENGTH_COUNTS_H
#define TOKMAP_PACK_LENGTH_COUNTS_H

#include <stdint.h>

struct length_counts;

/* Makes empty counts. They take 860 KB, of which only what is used occupies memory. NULL: there is not enough memory.
 */
struct length_counts *length_counts_new(void);
void length_counts_free(struct length_counts *counts); /* accepts NULL */

/* Counts a document of `length` tokens. One thread at a time. */
void length_counts_add(struct length_counts *counts, uint64_t length);
/* Adds all counts of *more to those of *sum. */
void length_counts_merge(struct length_counts *sum, const struct length_counts *more);

/* The longest length, exactly. 0 if nothing was counted. */
uint64_t length_counts_most(const struct length_counts *counts);
/* The length that `percent` percent of the documents, rounded up, do not exceed: 50 is the median. percent: 0 to 100.
 * 0 if nothing was counted. */
uint64_t length_counts_percentile(const struct length_counts *counts, uint32_t percent);

#endif
