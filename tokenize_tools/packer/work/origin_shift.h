/* SPDX-License-Identifier: MIT */
/*
 * origin_shift.h - corrects the record numbers of an index whose writer began inside an input file, and did not know
 * how many records precede.
 */
#ifndef TOKMAP_WORK_ORIGIN_SHIFT_H
#define TOKMAP_WORK_ORIGIN_SHIFT_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

/* Writes the index `from` to the new file `into`, with `records` added to the record of every run of the section
 * origin. All other sections keep their bytes. An older file `into` is replaced. No other process uses the names.
 * Statuses: OK, those of index_open(), ERROR_CORRUPT (a hash is wrong, or a number becomes too large), ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status origin_shift(const char *from, const char *into, uint64_t records, bool sync,
                                struct tokmap_error *error);

#endif
