/* SPDX-License-Identifier: MIT */
/*
 * case_loader_first.h - the first pass of a loader over tokens in the page cache, which maps pages and compares them
 * with their hashes, beside the pass after it.
 */
#ifndef TOKMAP_BENCH_CASES_CASE_LOADER_FIRST_H
#define TOKMAP_BENCH_CASES_CASE_LOADER_FIRST_H

#include "harness/harness.h"

/* Measures it for the case `loader`, and prints the results. name: the dataset, which must be in the page cache, and of
 * which this process must have no mapping. Returns CLI_DONE, or CLI_FAILED after a message. */
int loader_first_pass(struct bench *bench, const char *name);

#define FIRST_PASS_CHILD "first-pass"
/* Does the work of a copy of this program whose options.child is FIRST_PASS_CHILD: makes a first pass, whose system
 * calls another program counts, and prints its batches. */
int loader_first_pass_child(struct bench *bench);

#endif
