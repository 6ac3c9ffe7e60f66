/* SPDX-License-Identifier: MIT */
/*
 * case_compare.h - what a table of the case compare reads.
 */
#ifndef TOKMAP_BENCH_CASES_CASE_COMPARE_H
#define TOKMAP_BENCH_CASES_CASE_COMPARE_H

#include "harness/harness.h"

/* Returns whether the table that the command line names reads a text instead of a dataset. */
bool compare_reads_text(const struct bench *bench);

#endif
