/* SPDX-License-Identifier: MIT */
/* lower_case_tables.h - the tables that lower_case.c uses. make_lower_case.py generates lower_case_tables.c and prints
 * the sizes below. */
#ifndef TOKMAP_UNICODE_LOWER_CASE_TABLES_H
#define TOKMAP_UNICODE_LOWER_CASE_TABLES_H

#include "code_sets.h"

#define LOWER_RANGES 181
#define LOWER_IGNORED 427
#define LOWER_CASED 149

/* The characters first, first + step, ..., last become themselves + delta. Ascending, disjoint in what they contain. */
struct lower_range {
    uint32_t first, last;
    int32_t delta;
    uint32_t step;
};

extern const struct lower_range lower_ranges[LOWER_RANGES];
extern const struct code_range lower_ignored[LOWER_IGNORED]; /* case-ignorable */
extern const struct code_range lower_cased[LOWER_CASED];     /* cased, and not case-ignorable */

#endif
