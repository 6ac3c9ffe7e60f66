/* SPDX-License-Identifier: MIT */
/* case_tokenize_worst.h - `tokmap-bench tokenize --worst`: texts that are slow to encode, beside prose. */
#ifndef TOKMAP_BENCH_CASES_CASE_TOKENIZE_WORST_H
#define TOKMAP_BENCH_CASES_CASE_TOKENIZE_WORST_H

#include "harness/harness.h"

/* Measures and writes the results. */
int tokenize_worst_run(struct bench *bench);

#endif
