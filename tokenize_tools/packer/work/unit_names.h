/* SPDX-License-Identifier: MIT */
/*
 * unit_names.h - what the files of a unit of work (work_units.h), and those of a shard that is merged from all units,
 * are called in the folder NAME.work:
 *
 *     unit-000012.work/     what is made of the unit: its journal, and its finished shards, which end in .ready
 *     unit-000012.partial   the lock of the process that works on it
 *     unit-000012.skipped   what is left out of it, if a list of that is wanted
 *     shard-000007.work/    the shard, until all shards get their names; and its journal
 *     shard-000007.partial  the lock of the process that merges it
 *
 * That a unit or a shard is finished says a stage file (stage_file.h).
 */
#ifndef TOKMAP_WORK_UNIT_NAMES_H
#define TOKMAP_WORK_UNIT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the path of a unit's prefix, "FOLDER/unit-000012", with an ending. The caller frees it. NULL without
 * memory. */
char *unit_path(const char *folder, uint64_t unit, const char *ending);
/* Returns the prefix of one of its finished shards: set_ending is that of the shard set ("", ".train"). */
char *unit_shard_path(const char *folder, uint64_t unit, const char *set_ending, uint64_t shard, const char *ending);
/* Returns the path of a shard that is merged from the sorted documents of all units, "FOLDER/shard-000007", and of its
 * files. */
char *merged_path(const char *folder, uint64_t number, const char *ending);
char *merged_shard_path(const char *folder, uint64_t number, const char *ending);
/* Returns true if a name in the folder is that of a unit's or of a merged shard's list, lock, or folder; *is_folder
 * says whether it is a folder. */
bool unit_is_name(const char *entry, bool *is_folder);

#endif
