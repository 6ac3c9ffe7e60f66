/*
 * unit_record.h - the files of one unit of work (pack_units.h) in the folder NAME.work of unfinished work:
 *
 *     unit-000012.work/     what pack_run() makes of it: its journal, and its finished shards, which end in .unit
 *     unit-000012.partial   the lock of the process that works on it
 *     unit-000012.skipped   what is left out of it, if a list of that is wanted (skipped_items.h)
 *     unit-000012.done      the record: the unit is finished, and this is what it has
 *
 * A record is for the same version of tokmap and the same options (pack_facts.h), whose hash it has, so that units of
 * other work cannot get among these. It has the numbers of the closing report, and the lengths of documents as pairs of
 * a histogram.
 */
#ifndef TOKMAP_PACK_UNIT_RECORD_H
#define TOKMAP_PACK_UNIT_RECORD_H

#include "packing_options.h"

/* The path of a unit's prefix, "FOLDER/unit-000012", with an ending. The caller frees it. NULL without memory. */
char *unit_path(const char *folder, uint64_t unit, const char *ending);
/* The prefix of one of its finished shards: set_ending is that of the shard set ("", ".train"). */
char *unit_shard_path(const char *folder, uint64_t unit, const char *set_ending, uint64_t shard, const char *ending);
/* The same of a shard that is merged from the sorted documents of all units (shard_merge.h), "FOLDER/shard-000007", and
 * of its files. */
char *merged_path(const char *folder, uint64_t number, const char *ending);
char *merged_shard_path(const char *folder, uint64_t number, const char *ending);
/* Whether a name in the folder is that of a unit's or of a merged shard's record, list, lock, or folder; *is_folder
 * says which of the two. */
bool unit_is_name(const char *entry, bool *is_folder);

/* The hash of all that the bytes of a unit depend on beside its inputs, and of what a record consists of. Returns false
 * without memory. */
bool unit_record_key(const struct pack_options *options, uint64_t *key);

/* A number that changes with what a record consists of. */
uint64_t unit_record_layout(void);

/* Writes the record, syncs it, and gives it its name. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status unit_record_write(const struct pack_options *options, const char *folder, uint64_t unit,
                                     const struct pack_result *result, const struct histogram *lengths, bool sync,
                                     struct tokmap_error *error);

/* Reads a record, and adds its lengths to `lengths` unless that is NULL. Statuses: OK, ERROR_NOT_FOUND (the unit is not
 * finished), ERROR_CORRUPT (it is damaged, or of other options), ERROR_IO, ERROR_MEMORY. */
enum tokmap_status unit_record_read(const struct pack_options *options, const char *folder, uint64_t unit,
                                    struct pack_result *result, struct histogram *lengths, struct tokmap_error *error);

#endif
