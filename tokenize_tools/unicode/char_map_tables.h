/* SPDX-License-Identifier: MIT */
/* char_map_tables.h - the tables that char_map.c uses. make_unicode.py generates char_map_tables.c and prints the sizes
 * below. */
#ifndef TOKMAP_UNICODE_CHAR_MAP_TABLES_H
#define TOKMAP_UNICODE_CHAR_MAP_TABLES_H

#include "char_map.h"
#include "code_sets.h"

#define CASE_RANGES 186
#define NMT_REMOVED 6

/* The characters first, first + step, ..., last become themselves + delta. Ascending, disjoint in what they contain. */
struct case_range {
    uint32_t first, last;
    int32_t delta;
    uint32_t step;
};

extern const struct case_range case_ranges[CASE_RANGES];
extern const struct code_range nmt_removed[NMT_REMOVED];

#endif
