/* SPDX-License-Identifier: MIT */
/*
 * unit_record.h - packed-000012, a stage file (work/stage_file.h): unit 12 of the work (work_units.h) is finished, and
 * this is what it has.
 *
 * A record is for the same version of tokmap and the same options (pack_facts.h), whose hash is its key, so that units
 * of other work cannot get among these:
 *
 *     section UNIT_RESULT      the numbers of the closing report
 *     section UNIT_LENGTHS     lengths of documents, as histogram_save() appends them
 *     section SORTED_TOTALS    figures of the sorted documents (sorted_units.h); all but the lines is zero if
 *                              there is no shuffle
 *     section SORTED_CHUNKS    the chunks that they are in
 *     section UNIT_FOUND       the entries of the lists of --drop that the unit has (listed_documents.h)
 */
#ifndef TOKMAP_PACK_UNIT_RECORD_H
#define TOKMAP_PACK_UNIT_RECORD_H

#include "packing_options.h"
#include "shuffle/sorted_units.h"
#include "work/stage_file.h"

/* The sections of a record. */
enum { UNIT_RESULT, UNIT_LENGTHS, UNIT_FOUND = SORTED_END, UNIT_SECTIONS };
_Static_assert(UNIT_LENGTHS + 1 == SORTED_TOTALS, "sorted_units.h has the other sections");
struct stage_id unit_record_id(const char *folder, uint64_t key, uint64_t unit);

/* Computes the hash of all that the bytes of a unit depend on beside its inputs, and of what a record consists of.
 * Returns false without memory. */
bool unit_record_key(const struct pack_options *options, uint64_t *key);

/* Returns a number that changes with what a record consists of. */
uint64_t unit_record_layout(void);

/* The list of what is left out of a unit (skipped_items.h). */
struct skipped_size {
    uint64_t bytes, items;
};

/* Figures of a unit, section UNIT_RESULT. */
struct unit_result {
    struct pack_result pack;
    struct skipped_size skipped;
};

/* Writes the record and gives it its name. sorted: zeros without a shuffle. listed: the search for listed documents, or
 * NULL. Statuses: those of stage_writer_open() and stage_writer_commit(). */
enum tokmap_status unit_record_write(const struct stage_id *id, const struct unit_result *result,
                                     const struct histogram *lengths, const struct shuffle_sorted *sorted,
                                     const struct listed_search *listed, bool sync, struct tokmap_error *error);

/* Reads a record, and adds its lengths to `lengths`, and what it has found of lists to `listed`, unless these are NULL.
 * Statuses: those of stage_section_load() and listed_search_load(). */
enum tokmap_status unit_record_read(const struct stage_id *id, struct unit_result *result, struct histogram *lengths,
                                    struct listed_search *listed, struct tokmap_error *error);

#endif
