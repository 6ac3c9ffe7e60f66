/* SPDX-License-Identifier: MIT */
/* column_layout.h - where the parts of a column are in the section columns of an index. Any thread may call these
 * functions. */
#ifndef TOKMAP_FORMAT_COLUMN_LAYOUT_H
#define TOKMAP_FORMAT_COLUMN_LAYOUT_H

#include <stdbool.h>

#include "layout.h"

/* Offsets from the start of the section. */
struct column_layout {
    uint64_t name_at, codes_at, lows_at, carries_at, values_at;
    uint64_t end; /* of the column's data, a multiple of 8; the data of the next column begins here */
};

/* Computes the layout of a column in an index with this many documents. Returns false if a size in the head exceeds
 * what a file can hold. */
bool column_layout_of(const struct column_head *head, uint64_t documents, struct column_layout *layout);

#endif
