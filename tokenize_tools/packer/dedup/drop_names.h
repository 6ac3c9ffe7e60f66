/* SPDX-License-Identifier: MIT */
/* drop_names.h - at the end of a pack: the list of dropped documents that has the name NAME.dropped is that of the
 * output. One shard is replaced together with its list (format/shard_commit.h). */
#ifndef TOKMAP_DEDUP_DROP_NAMES_H
#define TOKMAP_DEDUP_DROP_NAMES_H

#include <stdbool.h>

#include "format/name_files.h"

/* Adds the list to the group of set_work_group(), or, if the output has none, the removal of an old or unfinished one.
 * group: NULL for one shard; then only an unfinished one is removed. */
void drop_names_add(struct name_files *group, const char *name, bool listed);

#endif
