/* SPDX-License-Identifier: MIT */
/*
 * scan_file.h - the stage file (stage_file.h) NAME.work/scan-000012: what the scan of unit 12 (unit_scan.h) has found.
 *
 *     section 0     struct unit_scan
 *     section 1     of each input with documents, its path: u32 bytes, the bytes
 *     section 2     struct stage_record of each document with an excluded n-gram
 *     section 3     --dedup minhash: struct scan_place of each document
 *     section 4 on  SCAN_PARTITIONS of them, by the first bits of a hash. --dedup exact: struct stage_record with the
 *                   key of each document that is not excluded; --dedup minhash: struct band_record
 *
 * All are in the order of the input. A scan that takes long has parts (stage_parts.h), which have the sections from the
 * second one on.
 */
#ifndef TOKMAP_DEDUP_SCAN_FILE_H
#define TOKMAP_DEDUP_SCAN_FILE_H

#include "document_key.h"
#include "work/stage_merge.h"

#define SCAN_PARTITIONS 256
enum { SCAN_TOTALS, SCAN_PATHS, SCAN_EXCLUDED, SCAN_PLACES, SCAN_FIRST, SCAN_SECTIONS = SCAN_FIRST + SCAN_PARTITIONS };

/* Place of a document: its record, and its input among those of the unit that have documents. */
struct scan_place {
    uint64_t record;
    uint32_t input, zero;
};

/* Result of the scan of a unit. */
struct unit_scan {
    struct place_counter places; /* of its documents; `input` is 0 */
    uint64_t lines;              /* of the part of a file that the unit has */
};

struct stage_id scan_file_id(const char *folder, uint64_t key, uint64_t unit);

/* Reads what the scan of a unit has found. Statuses: those of stage_section_load(). */
enum tokmap_status scan_file_read(struct unit_scan *scan, const struct stage_id *id, struct tokmap_error *error);

#endif
