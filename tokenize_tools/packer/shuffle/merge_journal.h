/* SPDX-License-Identifier: MIT */
/*
 * merge_journal.h - saves how far the merge of a shard is (shard_merge.h), and restores it in another process. So a
 * task that is killed loses seconds of its shard, whatever the size of the shard.
 *
 *     shard-000007.work/journal    a journal (work_folder.h) whose only fact is what the cut says of the shard
 *
 * After the fact follow, for each checkpoint:
 *
 *     increment    u64 kind, and bytes that the shard has added since the last checkpoint (shard_set_save()), or where
 *                  the merge is in each chunk (shuffle_merge_save())
 *     checkpoint   struct shard_set_state; valid with all increments before it
 *
 * As in pack_journal.h, increments are appended, the files of the shard are synced, and then the checkpoint is
 * appended and the journal synced. A journal that is damaged, or of another cut, is removed: the merge begins again.
 */
#ifndef TOKMAP_SHUFFLE_MERGE_JOURNAL_H
#define TOKMAP_SHUFFLE_MERGE_JOURNAL_H

#include "encode/shard_set.h"
#include "shuffle_merge.h"

struct merge_journal; /* for one thread at a time */

struct merge_journal_options {
    const char *prefix;     /* of the shard; valid as long as the journal */
    uint64_t shard_key;     /* a hash of what the shard is made of: work with another one is not continued */
    uint64_t checkpoint_ns; /* 0: nothing is saved, and earlier work is removed */
};

/* Looks for the journal of a killed process. Statuses: OK, ERROR_BUSY (another process merges this shard),
 * ERROR_CORRUPT (a file of the user has the name of the journal), ERROR_IO, ERROR_EXISTS, ERROR_MEMORY. */
enum tokmap_status merge_journal_open(struct merge_journal **journal, const struct merge_journal_options *options,
                                      struct tokmap_error *error);

/* Returns the state of the shard at the last checkpoint, for shard_set_reopen(); NULL: there is nothing to continue. */
const struct shard_set_state *merge_journal_found(const struct merge_journal *journal);

/* Restores a shard that shard_set_reopen() has opened, and moves the beginnings of the chunks to where the merge
 * continues. Statuses: OK, ERROR_CORRUPT, those of shard_set_load() and shard_set_restored(). */
enum tokmap_status merge_journal_restore(struct merge_journal *journal, struct shard_set *set,
                                         struct shuffle_chunks *chunks, struct tokmap_error *error);

/* Removes the journal, when there is nothing to continue. */
void merge_journal_drop(struct merge_journal *journal);

/* Makes a checkpoint if it is time for one. Statuses: OK, ERROR_IO, ERROR_BUSY, ERROR_MEMORY, those of
 * shard_set_save(). */
enum tokmap_status merge_journal_save(struct merge_journal *journal, struct shard_set *set,
                                      const struct shuffle_merge *merge, struct tokmap_error *error);

/* Returns true if another process could continue now. */
bool merge_journal_kept(const struct merge_journal *journal);

/* Frees the journal. done: it is removed; else it stays, unless it has no checkpoint. NULL is ignored. */
void merge_journal_close(struct merge_journal *journal, bool done);

#endif
