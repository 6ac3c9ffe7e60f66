/* SPDX-License-Identifier: MIT */
/*
 * stage_merge.h - merges sections of stage files (stage_file.h), each of which is in the order of the documents that
 * its records are about.
 *
 * All records have the layout of struct stage_record. A document of a unit (work_units.h) is known by the number of its
 * input, among those of the unit that have documents, and by the number of its record in that input, or in the part of
 * it that the unit has.
 */
#ifndef TOKMAP_WORK_STAGE_MERGE_H
#define TOKMAP_WORK_STAGE_MERGE_H

#include "stage_file.h"

struct stage_record {
    uint64_t record;
    uint32_t input;
    uint32_t unit; /* of the kept document; of a key: 0 */
    /* Halves of a key; the record of the kept document and its input, of a duplicate; the number of the n-gram and
     * STAGE_EXCLUDED, of an excluded document. */
    uint64_t first, second;
};
_Static_assert(sizeof(struct stage_record) == 32, "the bytes a document that the manual states");
#define STAGE_EXCLUDED UINT64_MAX

struct stage_merge; /* for one thread at a time */

/* count: how many sections at most. buffer_bytes: of each. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status stage_merge_new(struct stage_merge **merge, uint64_t count, uint32_t buffer_bytes,
                                   struct tokmap_error *error);
/* Adds a section; not after stage_merge_next(). Statuses: those of stage_reader_open(). */
enum tokmap_status stage_merge_add(struct stage_merge *merge, const struct stage_id *id, uint64_t section,
                                   struct tokmap_error *error);
/* Sets *record to the next one of all sections, or to NULL at the end. Statuses: those of stage_reader_next(),
 * ERROR_CORRUPT also for a section that is not in order. */
enum tokmap_status stage_merge_next(struct stage_merge *merge, const struct stage_record **record,
                                    struct tokmap_error *error);
void stage_merge_free(struct stage_merge *merge); /* accepts NULL */

/* Returns true if document a comes before b. */
static inline bool stage_is_before(const struct stage_record *a, const struct stage_record *b)
{
    return a->input != b->input ? a->input < b->input : a->record < b->record;
}

#endif
