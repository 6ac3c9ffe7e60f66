/* SPDX-License-Identifier: MIT */
/*
 * work_busy.h - finds out whether another process is using an output, so that no command removes its
 * work or begins beside it.
 *
 * A process at work holds a lock (flock) on a file:
 *
 *     packing without units     NAME.partial or NAME.tmx.partial, and soon the journal
 *     making the journal       journal.new
 *     a task                   its status file
 *     naming the shards        NAME.partial
 *
 * Where locks do not work, the counter in the status file decides (task_status.h).
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
