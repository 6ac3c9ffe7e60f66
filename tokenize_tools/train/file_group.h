/* SPDX-License-Identifier: MIT */
/*
 * file_group.h - several files that other programs read by fixed names, replaced as a group: under the final names
 * there is never a file of the old group beside one of the new group, also if the writer is killed or the power fails.
 *
 * No call renames several files at once. To replace files 0 to n - 1, a writer that has locked the partial file of the
 * last one, and has all new files on storage:
 *
 *     1. renames each old file PATH to PATH.replaced, from 0 on
 *     2. syncs the folder
 *     3. renames each PATH.partial to PATH, from 0 on: the last one is the last
 *     4. syncs the folder
 *     5. removes the files PATH.replaced
 *
 * In between, names are missing, for a few milliseconds. After a kill during 1 to 3, the next writer puts the old group
 * back before it does anything else; after that, it does step 5. A first group, which replaces nothing, is taken over.
 */
#ifndef TOKMAP_TRAIN_FILE_GROUP_H
#define TOKMAP_TRAIN_FILE_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "tokmap/tokmap.h"

#define FILE_GROUP_MAX 4

struct file_group {
    uint32_t count; /* at most FILE_GROUP_MAX */
    char *const *paths, *const *partials, *const *replaced;
};

/* For partial_file_open() of the last file: puts the old group back if a killed writer was at step 1 to 3, or removes
 * the files that a killed writer of a first group had renamed. The partial file that it has left still exists, and is
 * locked. If the last file has its name, and the old one its saved name, the new group is complete and stays. Returns
 * an errno. */
int file_group_take_back(const struct file_group *group);

/* With the locks on all partial files: does step 5 if a killed writer has left it to do, and waits for another writer
 * that is at it. Returns an errno; EWOULDBLOCK if that writer does not end within a second. */
int file_group_finish(const struct file_group *group);

/* Does the steps above. made[i]: there is a new file i; otherwise the old one has no successor. The last one is always
 * made. On failure the old group is as it was, unless the failure is that of step 4. Statuses: OK, ERROR_IO. */
enum tokmap_status file_group_commit(const struct file_group *group, const bool *made, struct tokmap_error *error);

#endif
