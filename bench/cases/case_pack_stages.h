/* SPDX-License-Identifier: MIT */
/*
 * case_pack_stages.h - a part of the case `pack`: the same text as records, plain and compressed, and each stage of
 * `tokmap pack` beside packing them without it.
 */
#ifndef TOKMAP_BENCH_CASES_CASE_PACK_STAGES_H
#define TOKMAP_BENCH_CASES_CASE_PACK_STAGES_H

#include "harness/harness.h"

struct stage_costs;

/* Makes the records, of --text-bytes of text. Returns CLI_DONE, or CLI_FAILED after a message, as does the next
 * function. */
int stage_costs_open(struct bench *bench, struct stage_costs **stages);
void stage_costs_free(struct stage_costs *stages); /* accepts NULL */

/* Packs the records once in each way. counts: add the results to the series. */
int stage_costs_repeat(struct bench *bench, struct stage_costs *stages, bool counts);

/* Writes the results. text: the rate of packing plain text. */
void stage_costs_report(struct bench *bench, const struct stage_costs *stages, const struct series *text);

#endif
