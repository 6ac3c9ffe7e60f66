/*
 * pack_finish.h - the end of work that was done in units: numbers the shards of all units, corrects the record numbers
 * where a unit began inside a file, and gives the shards their names (set_commit.h).
 *
 * A unit without documents of a set has an empty shard of it, which is left out; only if no unit has a document of the
 * set, one of these is its only shard. The files of the shards move from the folders of the units to the folder of the
 * set, tokens and masks first and indexes last; then set_commit.h gives them their names. A process that is killed on
 * the way leaves the records of the units, and the next one moves the rest.
 */
#ifndef TOKMAP_PACK_PACK_FINISH_H
#define TOKMAP_PACK_PACK_FINISH_H

#include "pack_stages.h"
#include "pack_units.h"
#include "packing_options.h"

/* Checks, before anything is packed, that no output of these names exists, unless options->replace. *incomplete: a
 * process was killed while it gave the shards their names. Statuses: OK, ERROR_EXISTS, ERROR_MEMORY. */
enum tokmap_status pack_names_check(const struct pack_options *options, bool *incomplete, struct tokmap_error *error);

/* Adds up the records of all units, in *result. missing[] gets the numbers of the first `capacity` units that are not
 * finished, *missing_count how many there are: then *result is of the others. Statuses: OK, those of
 * unit_record_read() but NOT_FOUND. */
enum tokmap_status pack_units_sum(const struct pack_options *options, const struct pack_units *units,
                                  const char *folder, struct pack_result *result, uint64_t *missing, uint64_t capacity,
                                  uint64_t *missing_count, struct tokmap_error *error);

/* Names the shards of all units, or the shuffled ones, which are finished, writes the list of dropped documents, passes
 * on what was left out, and removes the folder of unfinished work, unless options->also: then pack_finish_also() must
 * follow. *result: that of pack_units_sum(), whose shards and
 * content ids are set. Statuses: OK, those of set_work_open() and set_work_commit(), ERROR_INPUT (there are no
 * documents), ERROR_LIMIT (too much was left out, or too many shards), ERROR_CORRUPT (a file of a unit is missing). */
enum tokmap_status pack_finish(const struct pack_options *options, const struct pack_units *units, const char *folder,
                               const struct pack_found *found, struct pack_result *result, struct tokmap_error *error);

/* Whether the shards have their names, and a process was killed, or failed, before it had written all files of other
 * projects. */
bool pack_also_pending(const struct pack_options *options, const char *folder);

/* Writes these files, and removes the folder of unfinished work. units: NULL if what was left out of them has been
 * passed on by this process. *result is set to that of pack_finish(). Statuses: OK, those of pack_also_write(),
 * ERROR_BUSY (another process writes them), ERROR_NOT_FOUND (another process has written them). */
enum tokmap_status pack_finish_also(const struct pack_options *options, const struct pack_units *units,
                                    const char *folder, struct pack_result *result, struct tokmap_error *error);

/* Removes the unfinished work of a unit, so that it begins again. */
void pack_unit_clear(const char *folder, uint64_t unit);

/* Removes all that units and tasks have left in a folder of unfinished work, and the folder. Files that cannot be
 * removed stay. sync: for work that is over, whose journal must not come back after a power cut. Statuses: OK, ERROR_IO
 * (with sync), ERROR_MEMORY. */
enum tokmap_status pack_work_clear(const char *folder, bool sync, struct tokmap_error *error);

/* Whether the shards have left the folder, and those that have the names of the output are the same: a process was
 * killed between the last name and pack_work_clear(). sum: that of pack_units_sum(). */
bool pack_is_finished(const struct pack_options *options, const struct pack_units *units, const char *folder,
                      const struct pack_found *found, const struct pack_result *sum);

/* The output exists. If a process was killed after it had named the shards, and before it had removed all else, removes
 * that: the folder, and the lock. Work that may continue stays: it has a shard, or no record that a shard was finished.
 */
void pack_work_settle(const struct pack_options *options, const char *folder);

#endif
