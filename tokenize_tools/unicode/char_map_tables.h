/* SPDX-License-Identifier: MIT */
/* char_map_tables.h - the tables that char_map.c uses. make_unicode.py generates char_map_tables.c and prints the sizes
 * below. */
#ifndef TOKMAP_UNICODE_CHAR_MAP_TABLES_H
#define TOKMAP_UNICODE_CHAR_MAP_TABLES_H

#include "code_search.h"

enum char_map {
    CHAR_MAP_LOWER, /* Lowercase: lower case; U+0130 becomes two characters, and a final sigma is not special */
    CHAR_MAP_MARKS, /* StripAccents: removes combining marks */
    CHAR_MAP_NMT,   /* Nmt: removes control characters, and replaces others by spaces */
    CHAR_MAPS
};

#define CASE_RANGES 186
#define NMT_REMOVED 6

/* The characters first, first + step, ..., last become themselves + delta. Ascending, disjoint in what they contain. */
struct case_range {
    uint32_t first, last;
    int32_t delta;
    uint32_t step;
};

/* The characters that each map changes or removes. */
extern const struct code_bits char_map_sets[CHAR_MAPS];
extern const struct case_range case_ranges[CASE_RANGES];
extern const struct code_range nmt_removed[NMT_REMOVED];

#endif
