/* SPDX-License-Identifier: MIT */
/*
 * pack_finish.h - the end of work that was done in units: numbers the shards of all units, corrects the record numbers
 * where a unit began inside a file, and gives the shards their names (set_commit.h).
 *
 * A unit without documents of a set has an empty shard of it, which is left out; only if no unit has a document of the
 * set, one of these is its only shard. set_commit.h gives the files of the shards, in the folders of the units, their
 * names.
 */
#ifndef TOKMAP_PACK_PACK_FINISH_H
#define TOKMAP_PACK_PACK_FINISH_H

#include "pack_stages.h"
#include "packing_options.h"
#include "work/set_commit.h"
#include "work/work_units.h"

/* Checks, before anything is packed, that no output of these names exists, unless options->replace. *note says whether
 * a process is giving the shards their names, or was killed in doing so. Statuses: OK, ERROR_EXISTS, ERROR_MEMORY. */
enum tokmap_status pack_names_check(const struct pack_options *options, enum set_note *note,
                                    struct tokmap_error *error);

/* For the inputs of work in units (work_units.h): refuses a file of this output, or of an older one. *skips: the
 * process that is continued has made it, after it had read its inputs. output: struct output_names. Statuses: OK,
 * ERROR_ARGUMENT. */
enum tokmap_status pack_input_check(const void *output, const char *path, bool *skips, struct tokmap_error *error);

/* Adds up the records of all units, whose files have the key, in *result. Statuses: OK, ERROR_INTERRUPTED, those of
 * unit_record_read(). */
enum tokmap_status pack_units_sum(const struct pack_options *options, const struct work_units *units,
                                  const char *folder, uint64_t key, struct pack_result *result,
                                  struct tokmap_error *error);

/* Names the shards of all units, or the shuffled ones, which are finished, writes the list of dropped documents, passes
 * on what was left out, and removes the folder of unfinished work, unless options->also: then pack_finish_also() must
 * follow. *result: that of pack_units_sum(), whose shards and
 * content ids are set. Statuses: OK, those of set_work_open() and set_work_commit(), ERROR_INPUT (there are no
 * documents), ERROR_LIMIT (too much was left out, or too many shards), ERROR_CORRUPT (a file of a unit is missing),
 * ERROR_EXISTS also if another process has just given them their names. */
enum tokmap_status pack_finish(const struct pack_options *options, const struct work_units *units, const char *folder,
                               const struct pack_found *found, struct pack_result *result, struct tokmap_error *error);

/* Writes the files of other projects, and removes the folder of unfinished work. units: NULL if what was left out of
 * them has been passed on by this process. *result is set to that of pack_finish(). Statuses: OK, those of
 * pack_also_write(), ERROR_BUSY (another process writes them), ERROR_NOT_FOUND (another process has written them). */
enum tokmap_status pack_finish_also(const struct pack_options *options, const struct work_units *units,
                                    const char *folder, struct pack_result *result, struct tokmap_error *error);

/*
 * Finds out whether the output that is there is the one that a command would make. A scheduler may
 * run a task again after all tasks were done, and the task must not fail then.
 */

/* Hashes the names of all inputs in their order, as shards have them, into pack_options.inputs_hash. Returns false
 * without memory. */
bool pack_inputs_hash(const struct work_units *units, char hex[33]);

/* Compares an output in sets of numbered shards: the first shard of each set says that it has these options and inputs,
 * no input was changed since, and the files of all shards, those of other projects, and options->other_output are
 * there. False also if this cannot be found out. */
bool pack_output_is_same(const struct pack_options *options, const struct work_units *units);

#endif
