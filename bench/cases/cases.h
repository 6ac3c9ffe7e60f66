/* SPDX-License-Identifier: MIT */
/* cases.h - the cases of tokmap-bench. The file that defines one has a comment that says what it measures. */
#ifndef TOKMAP_BENCH_CASES_CASES_H
#define TOKMAP_BENCH_CASES_CASES_H

#include "harness/harness.h"

extern const struct bench_case case_check, case_compare, case_faults, case_order, case_loader, case_open, case_train,
    case_pack, case_plan, case_sources, case_verify, case_h2d, case_expand, case_race, case_gpu, case_tokenize,
    case_hostile, case_cost;

/* Parts of other cases, which --list does not show: `tokenize --worst`, `loader --device` with its copies, and `loader
 * --values`. */
extern const struct bench_case case_tokenize_worst, case_loader_device, case_loader_values;

#endif
