/* SPDX-License-Identifier: MIT */
/*
 * drop_list.h - which documents of a unit are dropped, and why, in the order of the input: what the stages before have
 * found (unit_scan.h, drop_resolve.h), merged.
 */
#ifndef TOKMAP_DEDUP_DROP_LIST_H
#define TOKMAP_DEDUP_DROP_LIST_H

#include "document_key.h"
#include "work/stage_parts.h"

/*
 * The stage file (stage_file.h) NAME.work/scan-000012: what the scan of unit 12 (unit_scan.h) has found.
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

/* The unit. */
struct drop_source {
    const char *folder;
    uint64_t key, unit, units, portions;
    const struct place_counter *places; /* that the scan of the unit has found */
    bool continues; /* the documents before the first one that is asked about were packed by a killed process */
};

/* Returns the file of a portion of the comparison (drop_resolve.h), which has a section for each of `units`. */
struct stage_id drops_file_id(const char *folder, uint64_t key, uint64_t portion, uint64_t units);

struct drop_list; /* for one thread at a time */

/* Statuses: those of stage_reader_open(). */
enum tokmap_status drop_list_open(struct drop_list **list, const struct drop_source *source,
                                  struct tokmap_error *error);
void drop_list_free(struct drop_list *list); /* accepts NULL */

/* Sets *record to the next dropped document, or to NULL at the end. Statuses: those of stage_merge_next(). */
enum tokmap_status drop_list_next(struct drop_list *list, const struct stage_record **record,
                                  struct tokmap_error *error);

/* Says whether a document, which comes after those that were asked about before, is dropped, and then sets *record.
 * Statuses: as above, ERROR_CORRUPT also for a document of the list that was not asked about. */
enum tokmap_status drop_list_find(struct drop_list *list, const struct document_place *place, bool *is_dropped,
                                  struct stage_record *record, struct tokmap_error *error);

/* After the last document: reads the rest, so that all hashes are compared. Statuses: as above. */
enum tokmap_status drop_list_end(struct drop_list *list, struct tokmap_error *error);

#endif
