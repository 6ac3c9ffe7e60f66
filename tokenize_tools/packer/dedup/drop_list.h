/* SPDX-License-Identifier: MIT */
/*
 * drop_list.h - which documents of a unit are dropped, and why, in the order of the input: what the stages before have
 * found (unit_scan.h, drop_resolve.h), merged.
 */
#ifndef TOKMAP_DEDUP_DROP_LIST_H
#define TOKMAP_DEDUP_DROP_LIST_H

#include "scan_file.h"

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
