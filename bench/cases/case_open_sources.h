/* SPDX-License-Identifier: MIT */
/*
 * case_open_sources.h - the part of the case `open` that opens many shards: as a run of many sources, and as one
 * dataset.
 */
#ifndef TOKMAP_BENCH_CASES_CASE_OPEN_SOURCES_H
#define TOKMAP_BENCH_CASES_CASE_OPEN_SOURCES_H

#include "harness/harness.h"

/* Creates the sources and the dataset, measures, and writes the results. Returns CLI_DONE, or CLI_FAILED after a
 * message. */
int open_sources(struct bench *bench);

/* What a copy of this program does whose options.child begins with OPEN_SOURCES_CHILD. */
#define OPEN_SOURCES_CHILD "sources"
int open_sources_child(struct bench *bench);

#endif
