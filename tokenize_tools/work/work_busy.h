/* SPDX-License-Identifier: MIT */
/*
 * work_busy.h - whether another process is at work on an output, so that nobody removes its work, or begins beside it.
 *
 * A process at work holds a lock (flock): the one that packs in one piece that of NAME.partial or NAME.tmx.partial, and
 * soon that of the journal; the one that makes the journal that of journal.new; a task that of its status; and the one
 * that names the shards that of NAME.partial. Where a lock says nothing, the counter in the status does
 * (task_status.h).
 */
#ifndef TOKMAP_WORK_WORK_BUSY_H
#define TOKMAP_WORK_WORK_BUSY_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

/* Returns true if a process holds the lock of the shard set `name`, or of the single shard of this name. */
bool work_is_locked(const char *name);

/* Returns the error for that. */
enum tokmap_status work_locked_error(const char *name, struct tokmap_error *error);

/* Checks that no process is at work in the folder of unfinished work of `name`. Waits TASK_WATCH_NS where no lock says
 * so. Statuses: OK (none is), ERROR_BUSY (one is; of a task, the message names process and host), ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status work_idle_check(const char *name, const char *folder, struct tokmap_error *error);

#endif
