/* SPDX-License-Identifier: MIT */
/* drop_finish.h - the list NAME.dropped (work/dropped_file.h) of work that was done in units, from what the stages
 * have found (dedup_stages.h). It is byte for byte the list of the same work without units. */
#ifndef TOKMAP_DEDUP_DROP_FINISH_H
#define TOKMAP_DEDUP_DROP_FINISH_H

#include "drop_resolve.h"
#include "work/dropped_writer.h"
#include "work/work_units.h"

/* Writes the list of the output `name`, complete and without its name. dropped_writer_free() frees *list, also after a
 * failure. Statuses: those of dropped_writer_open() and drop_list_next(), ERROR_INTERRUPTED. */
enum tokmap_status drop_finish(struct dropped_writer **list, const char *name, const char *reading,
                               const struct drop_stage *stage, const struct work_units *units,
                               const struct all_scans *scans, struct tokmap_error *error);

#endif
