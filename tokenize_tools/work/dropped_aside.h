/* SPDX-License-Identifier: MIT */
/*
 * dropped_aside.h - keeps the list of dropped documents (dropped_file.h) of a single shard while the shard is replaced.
 * The list of shard sets is one of the files that set_commit.h names as a group, and is not put aside.
 *
 * The list and the shard get their names one after the other. A process that replaces a shard, the *output*, therefore
 * first renames the old list to NAME.dropped.ID. ID is a number of the old output as 16 hexadecimal digits: the id of
 * its index, or 0 if there is no old output. If the old output has no list, NAME.dropped.ID is an empty file. So the
 * process that continues after a kill can find out whether the output is still the old one, and to which output
 * NAME.dropped belongs. Any other file with such a name is the user's, and stays.
 *
 * Example: the output 1f has a list, and is replaced by an output 2e with another one.
 *
 *     k.dropped becomes k.dropped.1f; k.dropped.partial becomes k.dropped
 *     k.tmx becomes that of output 2e
 *     k.dropped.1f is removed
 *
 * After a kill before the second step, the output is 1f, and k.dropped.1f becomes k.dropped again. After a kill behind
 * it, the output is 2e, so k.dropped.1f belongs to no output and is removed.
 */
#ifndef TOKMAP_WORK_DROPPED_ASIDE_H
#define TOKMAP_WORK_DROPPED_ASIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "tokmap/tokmap.h"

/* Refuses, before anything is written, an output whose list could not be put aside because the new name would be too
 * long. listed: an output exists, and the new one gets a list. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status dropped_aside_check(const char *name, bool listed, struct tokmap_error *error);

/* Puts the list of the output aside, and syncs that with `sync`. listed: the new output has a list. Otherwise the
 * unfinished list of a killed process is removed. Statuses: OK, ERROR_EXISTS (a file of the user has the name),
 * ERROR_IO, ERROR_MEMORY. */
enum tokmap_status dropped_aside(const char *name, uint64_t output, bool listed, bool sync, struct tokmap_error *error);
/* Gives the list of an output that could not be replaced its name back. */
void dropped_restore(const char *name, uint64_t output);
/* Removes the list of an output that was replaced, or all lists that were put aside. One that cannot be removed only
 * takes up space. */
void dropped_forget(const char *name, uint64_t output);
void dropped_forget_all(const char *name);

/* Returns true if a list may have been put aside: also if the folder cannot be listed. */
bool dropped_find_aside(const char *name);
/* Completes what a killed process had begun, with the number of the output that exists now: gives its list its name
 * back, and removes the other lists. keeps: the new list of that process becomes the unfinished list again; otherwise
 * it is removed. Statuses: OK, ERROR_EXISTS (a file of the user has the name of the list), ERROR_IO, ERROR_MEMORY. */
enum tokmap_status dropped_settle(const char *name, uint64_t output, bool keeps, struct tokmap_error *error);

#endif
