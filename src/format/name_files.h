/* SPDX-License-Identifier: MIT */
/*
 * name_files.h - gives finished files their names, one or a group, so that the process after a kill or a power cut
 * finds old files, new ones, or nothing. Only this module renames files, and shard_commit.h, which replaces the files
 * of one shard while others read it.
 *
 * A group has entries {from, to, level}. Its files are in, or below, the folder that contains NAME. A file of level 2,
 * such as a manifest, says that those of level 1 are there, and a file of level 1, such as an index, that those of
 * level 0 are. So the names change in this order, with a sync of the folder between two levels, and at no moment does a
 * file speak for others than its own:
 *
 *     1. from the highest level down to 1: what has the name of an entry is removed
 *     2. from level 0 up: each file gets its name, which replaces one of level 0; an entry without `from` is removed
 *
 * A group whose new files are worthless without the last one, such as those that `tokmap convert` can write again,
 * needs no more (name_files_now()). Otherwise the group is written to a *note* before anything is renamed, and the
 * process that finds the note does the rest. The last step is then
 *
 *     3. the note is removed; or, if more work follows, it is renamed to NAME.work/named
 *
 * A file that is not at `from` has its name already: 1 does not remove it, and 2 leaves it. So all steps can be done
 * again from the beginning.
 *
 * Example: a set of three shards is replaced by one of two, and the writer is killed in step 2, after web-00000.bin. A
 * reader of `web` finds no dataset. A reader of the whole folder finds web-00000.bin without an index, which is an
 * error. The next writer of `web` finds the note, removes nothing in step 1, leaves web-00000.bin, and does the rest.
 *
 *     level    from                             to
 *     0        web.work/web-00000.bin.ready     web-00000.bin
 *     1        web.work/web-00000.tmx.ready     web-00000.tmx
 *     0        (removed)                        web-00002.bin
 *     1        (removed)                        web-00002.tmx
 *     2        web.work/web.ready               web
 */
#ifndef TOKMAP_FORMAT_NAME_FILES_H
#define TOKMAP_FORMAT_NAME_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "tokmap/tokmap.h"

#define NAME_FILES_LEVELS 3
#define NAME_FILES_HEAD "tokmap-naming 2\n" /* of the note */
#define NAME_FILES_NAMED "named"            /* the note, when all have their names, and more work follows */

/* Gives one file its name, which replaces a file of that name. With `sync`, the file is brought to storage before, and
 * its name after. fd: of the file; -1: it has been synced. *named: it has its name; false after a failure, unless that
 * of the last sync; NULL is allowed. Returns an errno. */
int name_file(int fd, const char *from, const char *to, bool sync, bool *named);

struct name_entry;

struct name_files {
    const char *name; /* NAME, as a path; its last part has no line end if there is a note */
    bool beside;      /* the note is NAME.naming; otherwise it is NAME.work/naming */
    struct name_entry *entries;
    uint64_t count, room;
    bool failed; /* there was no memory for an entry */
    char *note;  /* the path of the note, once it is written */
};

/* Adds an entry, with paths in the folder of NAME or below it, which are freed; NULL stands for no memory. */
void name_files_add(struct name_files *group, unsigned level, char *from, char *to);
/* Adds an entry of a file that is removed. */
void name_files_remove(struct name_files *group, unsigned level, char *path);
/* Frees the memory of a group, also of one that is zero but for its name. */
void name_files_free(struct name_files *group);

/* Names the files of a group without a note, which have been synced. If that fails before the last one has its name,
 * the others are removed. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status name_files_now(struct name_files *group, bool sync, struct tokmap_error *error);

/* Writes the note. From now on, name_files_complete() is called by this process or by the next one. last: called when
 * nothing can fail any more but this call and a rename; NULL, or what is to be done before. Statuses: OK, ERROR_IO,
 * ERROR_MEMORY, those of last(). */
enum tokmap_status name_files_write(struct name_files *group, bool sync,
                                    enum tokmap_status (*last)(void *user, struct tokmap_error *error), void *user,
                                    struct tokmap_error *error);

/* Returns true if there is a note. */
bool name_files_pending(const struct name_files *group);

/* Does what the note says, if there is one; unless name_files_write() has just written it, its entries take the place
 * of those of `group`. The caller has the lock of NAME, and NAME.work is not a link. stays: step 3 renames the note,
 * which is not beside. Sets *found if there was a note. Statuses: OK, ERROR_IO, ERROR_CORRUPT (the note is damaged, or
 * a file is gone), ERROR_MEMORY. */
enum tokmap_status name_files_complete(struct name_files *group, bool sync, bool stays, bool *found,
                                       struct tokmap_error *error);

#endif
