/* SPDX-License-Identifier: MIT */
/*
 * parquet_cut.h - divides the row groups of a Parquet file among parts, so that several processes share it.
 *
 * The place of a row group is the byte at which its pages of the first chosen column begin; one without values has
 * none. A part has consecutive row groups, and ends before one whose place is in another multiple of part_bytes than
 * that of the row group before it. The bytes of the file belong to parts, too: a part has those from the place of its
 * first row group up to the place of the next part, the first part those from the beginning, and the last one those up
 * to the end.
 *
 * Example: the places are 4, 700, 1100, none, 1900, 5200, and the file has 6000 bytes. With part_bytes 1000 the parts
 * have the row groups 0 and 1 (bytes 0 to 1099); 2, 3, and 4 (1100 to 5199); and 5 (5200 to 5999).
 *
 * A file is not cut whose row groups do not have the order in it that their rows have.
 */
#ifndef TOKMAP_PARQUET_PARQUET_CUT_H
#define TOKMAP_PARQUET_PARQUET_CUT_H

#include "parquet_footer.h"

struct parquet_part {
    uint64_t first, end; /* row groups [first, end) */
    uint64_t begin;      /* byte of the file */
    uint64_t bytes;
};

struct parquet_cut {
    struct parquet_part *parts;
    uint64_t count; /* 0: the file is not cut. Otherwise at least 2 */
    uint64_t hash;  /* parquet_cut_hash() of the footer */
};

/* Divides a file. part_bytes is at least 1. The result must be freed, also after an error. Statuses: OK, ERROR_MEMORY.
 */
enum tokmap_status parquet_cut_make(struct parquet_cut *cut, const struct parquet_footer *footer, uint64_t part_bytes,
                                    struct tokmap_error *error);
void parquet_cut_free(struct parquet_cut *cut); /* accepts zeros */

/* Returns a hash of where the row groups are and how many rows they have, other than 0; 0 without memory. The reader of
 * a part compares it with the hash of the footer that was cut. */
uint64_t parquet_cut_hash(const struct parquet_footer *footer);

/* Returns the part that has the row groups [first, end) of a file that was cut there, or all of a file. */
struct parquet_part parquet_cut_part(const struct parquet_footer *footer, uint64_t first, uint64_t end);

#endif
