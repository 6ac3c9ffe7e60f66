/* SPDX-License-Identifier: MIT */
/* cases.h - the cases of tokmap-bench. The file that defines one has a comment that says what it measures. */
#ifndef TOKMAP_BENCH_CASES_CASES_H
#define TOKMAP_BENCH_CASES_CASES_H

#include "harness/harness.h"

extern const struct bench_case case_check, case_compare, case_faults, case_order, case_loader, case_open, case_train,
    case_pack, case_plan, case_sources, case_verify, case_h2d, case_expand, case_race, case_gpu, case_tokenize,
    case_hostile, case_cost;

/* Returns whether the table of compare that the command line names reads a text instead of a dataset. */
bool compare_reads_text(const struct bench *bench);

/* `tokenize --worst`: measures texts that are slow to encode, beside prose. */
int tokenize_worst_run(struct bench *bench);

/* `loader --device`: measures batches delivered to a GPU. Its results have the case name "device_loader". */
int loader_device(struct bench *bench);

#define FIRST_OPENING_CHILD "first-opening"
/* Does the work of a copy of this program whose options.child is FIRST_OPENING_CHILD: opens the first loader of a
 * process. */
int first_opening_child(struct bench *bench);

#endif
