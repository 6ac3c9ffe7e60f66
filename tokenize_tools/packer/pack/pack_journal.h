/* SPDX-License-Identifier: MIT */
/*
 * pack_journal.h - the journal of pack.h: saves the work of a process, and restores it in another one.
 *
 * A checkpoint is a batch border: all that was committed before it is in the files, and nothing after it. What the
 * files do not have is in the journal (work_folder.h):
 *
 *     increment    bytes that the open shard of a set, or the caller, has added since the last checkpoint
 *     lengths      counts of lengths of documents, all of them
 *     checkpoint   where the reader is, the counters, and the state of each set; valid with all increments before it
 *     complete     all inputs are packed, and from now on the files may get their names
 *
 * The increments of a checkpoint are appended, then the files are synced, then the checkpoint is appended and the
 * journal is synced. So a checkpoint that can be read is one whose bytes are all on storage. The folder is made by the
 * first checkpoint: a run that ends before has none. Only where documents are compared in stages (dedup_stages.h) it is
 * made before them, and what they have found can be continued without a checkpoint.
 */
#ifndef TOKMAP_PACK_PACK_JOURNAL_H
#define TOKMAP_PACK_PACK_JOURNAL_H

#include "pack_batches.h"

struct pack_journal; /* for one thread at a time */

/* All that a checkpoint has beside the increments. */
struct pack_checkpoint {
    struct corpus_place place;
    struct pack_result result; /* without what is known only at the end */
    uint64_t left_out, open_tokens;
    struct drop_state drop;
    struct shuffle_state shuffle;
    struct shard_set_state sets[SPLIT_SETS_MOST];
};

/* Returns true if there is to be a journal. stages: files of stages may be kept. Earlier work is looked at even if no
 * new work is saved. */
bool pack_journal_is_needed(const struct pack_options *options, bool stages);

/* Looks for the journal of a killed process, and reads its last checkpoint. Without a checkpoint, and without files of
 * stages that were finished before the first one (pack_journal_stages()), there is nothing to continue. The options and
 * operands must stay valid as long as the journal. names: it is not that of a unit. Statuses: those of
 * work_folder_open(). */
enum tokmap_status pack_journal_open(struct pack_journal **journal, const struct pack_options *options,
                                     const char *const *operands, size_t count, bool names, struct tokmap_error *error);

/* Returns true if there is a checkpoint to continue from. */
bool pack_journal_found(const struct pack_journal *journal);
/* Returns true if a killed process has given the output its names. One shard is known by the id of its index, which
 * pack_journal_ready() has recorded. Adds to *result what the shards say. */
bool pack_journal_is_named(const struct pack_journal *journal, uint32_t set_count, struct pack_result *result);
/* Returns that checkpoint. */
struct pack_checkpoint *pack_journal_last(struct pack_journal *journal);
/* Removes the journal, when there is nothing to continue. */
void pack_journal_drop(struct pack_journal *journal);

/* Restores all parts: sets that shard_set_reopen() has opened, an empty histogram, and workers that have not begun.
 * Statuses: OK, ERROR_CORRUPT, those of shard_set_load() and corpus_resume(). */
enum tokmap_status pack_journal_restore(struct pack_journal *journal, const struct pack_parts *parts,
                                        struct tokmap_error *error);

/* Restores only the counters, the lengths, and what the caller has saved, of work whose output has its names already.
 */
enum tokmap_status pack_journal_report(struct pack_journal *journal, const struct pack_parts *parts,
                                       struct tokmap_error *error);

/* Makes the folder, before the first checkpoint, for files that a checkpoint counts on: *folder, or NULL if nothing is
 * saved. Statuses: those of work_folder_open() but UNSUPPORTED. */
enum tokmap_status pack_journal_begin(struct pack_journal *journal, const char **folder, struct tokmap_error *error);

/* Does the same for files of stages that precede the first checkpoint; also if nothing is saved. Statuses: those of
 * work_folder_open(). */
enum tokmap_status pack_journal_stages(struct pack_journal *journal, const char **folder, struct tokmap_error *error);
/* Finds out, after the stages or their failure, whether another process could continue them. */
void pack_journal_staged(struct pack_journal *journal);
/* Returns the folder; NULL if there is no folder or journal, or if the work cannot be continued. */
const char *pack_journal_folder(const struct pack_journal *journal);
const char *pack_journal_kept_folder(const struct pack_journal *journal);
/* Returns true if an entry of the folder is a file that a pack without units has made, other than the journal and the
 * shards (work_folder.h). A chunk of documents contains only tokens, so it cannot be identified without a journal. */
bool pack_journal_owns(const char *folder, const char *entry, bool journal);
/* Does the same for the folder of a unit, which is never one of the user's. */
bool pack_journal_owns_unit(const char *folder, const char *entry, bool journal);

/* Makes a checkpoint, if it is time for one and the place allows it. Statuses: those of shard_set_save() and
 * work_folder.h. */
enum tokmap_status pack_journal_save(struct pack_journal *journal, const struct pack_parts *parts,
                                     const struct corpus_place *place, struct tokmap_error *error);
/* Does the same at any time, before stages that may take long, at the last place that pack_journal_save() has got. It
 * alone is no reason to keep the work of a process that fails: pack_journal_staged() follows. */
enum tokmap_status pack_journal_save_now(struct pack_journal *journal, const struct pack_parts *parts,
                                         struct tokmap_error *error);
/* Makes the last checkpoint, if the work could be continued before, or if files of other projects follow. */
enum tokmap_status pack_journal_finish(struct pack_journal *journal, const struct pack_parts *parts,
                                       struct tokmap_error *error);
/* Records the id of the index of a single shard, after pack_journal_finish(), when the shard is on storage under its
 * partial name. Statuses: those of work_folder.h. */
enum tokmap_status pack_journal_ready(struct pack_journal *journal, struct tokmap_error *error);

/* Removes the files of stages with the journal, if the work was short. All is checked, and the files are read. */
void pack_journal_settle(struct pack_journal *journal);

/* Returns true if a killed process could be continued now. */
bool pack_journal_kept(const struct pack_journal *journal);

/* Frees the journal. done: its files are removed; else they remain, unless there is no checkpoint. NULL is ignored. */
void pack_journal_close(struct pack_journal *journal, bool done);

#endif
