/* SPDX-License-Identifier: MIT */
/*
 * pack_clear.h - removes what units and tasks have left in NAME.work, the folder of unfinished work, and nothing that
 * the user has put there.
 */
#ifndef TOKMAP_PACK_PACK_CLEAR_H
#define TOKMAP_PACK_PACK_CLEAR_H

#include "packing_options.h"

/* Removes the unfinished work of a unit, so that it begins again. */
void pack_clear_unit(const char *folder, uint64_t unit);

/* Removes all that units and tasks have left in a folder of unfinished work, and the folder. Files that cannot be
 * removed stay. sync: syncs the removal, for completed work, whose journal must not be there again after a power cut.
 * Statuses: OK, ERROR_IO (with sync), ERROR_MEMORY. */
enum tokmap_status pack_clear_work(const char *folder, bool sync, struct tokmap_error *error);

/* Removes the rest of the work of an output that exists: a process may have been killed before it had removed the
 * folder, from which it removes the journal first, and the lock. */
void pack_clear_settle(const struct pack_options *options, const char *folder);

/* Removes all that units and tasks have left in the folder, to start over. Removes nothing while a process is at work
 * on the output, and no process begins to write it meanwhile. Statuses: those of work_idle_check(). */
enum tokmap_status pack_clear_start(const char *name, const char *folder, struct tokmap_error *error);

#endif
