/* SPDX-License-Identifier: MIT */
/*
 * case_pack_stages.h - a part of the case `pack`: the same text as records, plain and compressed, and each stage of
 * `tokmap pack` beside packing them without it.
 */
#ifndef TOKMAP_BENCH_CASES_CASE_PACK_STAGES_H
#define TOKMAP_BENCH_CASES_CASE_PACK_STAGES_H

#include "harness/harness.h"

struct pack_stages;

/* Makes the records, of --text-bytes of text. Returns CLI_DONE, or CLI_FAILED after a message, as does the next
 * function. */
int pack_stages_open(struct bench *bench, struct pack_stages **stages);
void pack_stages_free(struct pack_stages *stages); /* accepts NULL */

/* Packs the records once in each way. counts: add the results to the series. */
int pack_stages_repeat(struct bench *bench, struct pack_stages *stages, bool counts);

/* Writes the results. text: the rate of packing plain text. */
void pack_stages_report(struct bench *bench, const struct pack_stages *stages, const struct series *text);

#endif
