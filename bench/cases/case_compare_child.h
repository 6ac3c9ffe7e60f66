/* case_compare_child.h - the row `tokmap in C` of compare: a process with nothing but a loader. */
#ifndef TOKMAP_BENCH_CASES_CASE_COMPARE_CHILD_H
#define TOKMAP_BENCH_CASES_CASE_COMPARE_CHILD_H

#include "harness/harness.h"

/* Reads commands from standard input, a line each, and answers each with a line of JSON on standard output, until its
 * input ends. bench/peers/compare/driver.py documents the answers:
 *
 *     hello
 *     open sequential|own SECONDS MOST [CURSOR]
 *     run SECONDS MOST
 *     take BATCHES ROWS    instead of places, the ids of the first ROWS rows
 *     state
 *     close */
int compare_child(struct bench *bench);

#endif
