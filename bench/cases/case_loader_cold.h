/* SPDX-License-Identifier: MIT */
/* case_loader_cold.h - the case `loader` with --cold: batches from storage. */
#ifndef TOKMAP_BENCH_CASES_CASE_LOADER_COLD_H
#define TOKMAP_BENCH_CASES_CASE_LOADER_COLD_H

#include "harness/harness.h"

/* Runs it. Its results have the case name "cold". Returns CLI_DONE, or CLI_FAILED after a message. */
int loader_cold(struct bench *bench);

#endif
