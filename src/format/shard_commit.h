/* SPDX-License-Identifier: MIT */
/*
 * shard_commit.h - gives the finished files of a shard their names, so that a reader finds the old shard or the new one
 * at every moment, also if the writer is killed or the power fails; and cleans up after a writer that was killed.
 *
 * Several names change, and no call changes them at once. So the index decides. The *id* of an index is the hash of
 * its section table; the *saved name* of a file NAME.bin for an index is NAME.bin.ID, with the id as 16 hexadecimal
 * digits. A reader that has opened an index and finds no NAME.bin opens the saved name of that index instead. The same
 * holds for NAME.mask and NAME.bin.zst, which has the tokens of a sealed shard in place of NAME.bin. NAME.dropped,
 * which no index describes, is treated like NAME.mask, so that a shard and its list of dropped documents are replaced
 * together. To replace index O with index N, a writer, with all new files on storage:
 *
 *     1. renames NAME.mask.partial to NAME.mask.N and NAME.bin.partial to NAME.bin.N
 *     2. renames NAME.bin to NAME.bin.O and NAME.mask to NAME.mask.O; readers of O find these. A file that has the name
 *        of a new one and does not belong to O is removed, because readers of N would take it for theirs
 *     3. syncs the folder
 *     4. renames NAME.tmx.partial to NAME.tmx: from now on, the shard is the new one
 *     5. syncs the folder
 *     6. removes the files named .O; one that cannot be removed is tried again at the end
 *     7. renames NAME.mask.N to NAME.mask, and then NAME.bin.N to NAME.bin, and syncs the folder
 *
 * NAME.bin is missing between 2 and 7, and NAME.tmx never. Whatever subset of the names of steps 1 and 2 reaches
 * storage, index O has its files, and the same holds for index N after 5. After step 4 the writer still holds its lock,
 * which is now on NAME.tmx; the next writer finds no NAME.bin, waits for that lock, and does what is missing. An index
 * that replaces nothing is renamed last, between two syncs. If both indexes have the same id, so do the files, and each
 * is renamed over the old one. An old index that cannot be read is removed first.
 */
#ifndef TOKMAP_FORMAT_SHARD_COMMIT_H
#define TOKMAP_FORMAT_SHARD_COMMIT_H

#include <stdbool.h>

#include "index_reader.h"
#include "shard_file.h"

/* The names of a shard. The commit changes a file only if names[] has it. */
struct shard_commit {
    const char *index, *index_partial;
    const char *names[SHARD_FILE_KINDS];    /* that of the index is NULL; of the list: NULL if it stays */
    const char *partials[SHARD_FILE_KINDS]; /* NULL: the new index has no such file, or keeps it; else names[] has it */
    uint64_t id;                            /* of the new index */
    bool sync;                              /* the files have been synced, so the folder is, too */
    /* Called between steps 3 and 4, or before anything is renamed where no index is replaced; or NULL. */
    enum tokmap_status (*last)(void *user, struct tokmap_error *error);
    void *last_user;
};

/* Does the steps above. The caller holds the lock on index_partial. *visible: the new index has its name, and the
 * partial files are gone; the status may nevertheless be a failure, and then the shard is complete and can be read.
 * Otherwise the new files have their partial names, except those that cannot be renamed back, which are removed, and
 * those that have replaced equal files of the old shard. The old shard is unchanged unless the message says something
 * else. Statuses: OK, ERROR_EXISTS (a file of the user is where the old list would be), ERROR_IO, ERROR_MEMORY, and
 * those of opening a file. */
enum tokmap_status shard_commit(const struct shard_commit *commit, bool *visible, struct tokmap_error *error);

/* Completes, or takes back, what a killed writer has left of the steps above. To be called before anything is written,
 * with the lock on index_partial; uses index, names, and whether there are partials. Before it renames the files of the
 * index, it removes those of other indexes, so that a second kill hides nothing. Statuses: OK (also if there is no
 * index, or none that can be read), ERROR_BUSY (another writer is at step 5 to 7, and did not finish within a second),
 * ERROR_IO (also if a saved name would be too long for the file system, so that the shard cannot be replaced),
 * ERROR_MEMORY. */
enum tokmap_status shard_recover(const struct shard_commit *commit, struct tokmap_error *error);

/* Creates and locks index_partial, to replace the index `old`, which was opened before, and does shard_recover(). what:
 * is written, for messages. *fd is -1 if nothing was created. Statuses: those of shard_recover(), ERROR_BUSY also if
 * the shard is not that of `old` any more. */
enum tokmap_status shard_commit_lock(const struct shard_commit *commit, const struct index *old, const char *what,
                                     int *fd, struct tokmap_error *error);

/* Removes the files that a writer has left that was killed at step 1 or 2: those with saved names of other indexes than
 * the current one. To be called with the lock on the index_partial of that writer, before this sign of it is removed.
 * Does nothing if the current index has a file with only a saved name: shard_recover() then removes the others after
 * its sync. A file that cannot be removed stays; it only takes up space. */
void shard_remove_saved(const struct shard_commit *commit);

/* Does the same for the shard PREFIX, which is complete and whose old files a power cut may have brought back, if
 * no process has the lock. */
void shard_settle(const char *prefix);

/* Gives the tokens and the mask of a writer that was killed at step 1 to 3, or before it renamed the index, their
 * partial names again, so that a writer that continues from a saved state finds them. Only files that belong to
 * index_partial, which the caller has locked, by their size and their first block: any other NAME.bin is the user's,
 * and stays. Sealed tokens are made again from the tokens. To be followed by shard_take_over(). Returns an errno. */
int shard_take_back(const struct shard_commit *commit);

/* If there is an index, shard_remove_saved(). Otherwise removes the NAME.bin and NAME.mask, or the files with their
 * saved names, of a writer that was killed before it renamed the index: index_partial, which the caller has locked, is
 * a complete index to which they belong, by their size and their first block. Anything else stays, also the saved files
 * of an old index that somebody has removed since then: where that index was moved, they are the only copy of its
 * tokens. Returns an errno: ELIBACC if there are sealed tokens, and libzstd, without which they cannot be compared,
 * cannot be loaded. */
int shard_take_over(const struct shard_commit *commit);

#endif
