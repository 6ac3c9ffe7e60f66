/* SPDX-License-Identifier: MIT */
/* case_pack_memory.h - `tokmap-bench pack --memory`: the peak memory of packing, beside what the manual page states. */
#ifndef TOKMAP_BENCH_CASES_CASE_PACK_MEMORY_H
#define TOKMAP_BENCH_CASES_CASE_PACK_MEMORY_H

#include "harness/harness.h"

/* Measures and writes the results; in a copy of this program, writes the large document to standard output instead.
 * Returns CLI_DONE, CLI_FAILED after a message or if a limit that --require names is not held, or CLI_MISUSED after a
 * message. */
int pack_memory_run(struct bench *bench);

#endif
