/* SPDX-License-Identifier: MIT */
/*
 * set_commit.h - gives the finished shards of one or several shard sets their names, so that a reader finds the old
 * sets, the new ones, or an error, also if the writer is killed or the power fails.
 *
 * A *shard set* NAME is a manifest called NAME and its shards NAME-00000, NAME-00001, and so on. All sets that one
 * writer makes (NAME, or NAME.train and NAME.val) share the folder NAME.work, in which the files of finished shards end
 * in .ready, so that no reader takes them for shards. NAME.partial is the writer's lock. When all shards and manifests
 * are on storage, the writer names them as a group (name_files.h), in which a manifest has a higher level than the
 * indexes, and an index than tokens, sealed or not, and masks. Then it removes NAME.work, or leaves NAME.work/named in
 * it, if more work follows.
 *
 * Before the note of the group is there, the old sets are unchanged. After it, a name has no manifest, and each file of
 * tokens lacks its index until the last one has got it. So at no moment do shards of both sets make one dataset.
 */
#ifndef TOKMAP_WORK_SET_COMMIT_H
#define TOKMAP_WORK_SET_COMMIT_H

#include <stdbool.h>

#include "format/name_files.h"

#define SET_SHARDS_MOST 100000 /* of one set, so that the order of names is the order of numbers */
#define SETS_MOST 64
#define SET_JOURNAL_HEAD "tokmap-journal " /* a file NAME.work/journal that does not begin so is one of the user */
#define SET_ENDING_MOST 64                 /* bytes of what follows NAME in the name of a set */

/* Returns true if this path of a folder NAME.work is a symbolic link: what it leads to may not be ours, so it is
 * neither read nor emptied. The error for that is ERROR_EXISTS. */
bool set_folder_is_link(const char *path);
enum tokmap_status set_folder_link_error(const char *path, struct tokmap_error *error);

struct set_work; /* for one thread at a time */

struct set_work_options {
    /* Endings that follow NAME in the names of the sets: "" for one set called NAME, or ".train", ".val". 1 to
     * SETS_MOST, all different, of 0 to SET_ENDING_MOST letters, digits, points, dashes, and underscores. */
    const char *const *endings;
    uint32_t sets;
    bool sealed;    /* true if the shards are sealed: they have .bin.zst in place of .bin */
    bool replace;   /* true if existing sets of these names are replaced; if false, opening reports ERROR_EXISTS */
    bool sync;      /* false only for files that need not survive a crash */
    bool keep;      /* true if the folder for the shards may exist, and its files are continued */
    bool journaled; /* true if the caller owns the journal and removes it */
    /* More work follows the commit: a journal stays, also if it is what a killed writer has left, and NAME.work/named,
     * which the caller removes, after the journal. */
    bool continues;
    /* Called in the commit, when nothing can fail any more but this call and the rename of the note: removes what is
     * beside the old shards and would not fit the new ones. A status other than OK ends the commit with it. Or NULL. */
    enum tokmap_status (*last)(void *user, struct tokmap_error *error);
    void *last_user;
    bool
        shared; /* not with `keep`: the folder may exist, with a journal and others' files, which stay; shards do not */
    bool placed; /* the caller adds the files of the new shards to set_work_group(): they do not wait in the folder */
};

/* Takes the lock, completes what a killed writer has left, checks that the names are free (or those of
 * sets, with options.replace), and makes an empty folder for the shards. Statuses: OK, ERROR_EXISTS, ERROR_BUSY,
 * ERROR_IO, ERROR_NOT_FOUND, ERROR_ARGUMENT, ERROR_CORRUPT (the files of a killed writer are not complete),
 * ERROR_MEMORY. */
enum tokmap_status set_work_open(struct set_work **work, const char *name, const struct set_work_options *options,
                                 struct tokmap_error *error);

/* Completes the names that a killed writer has left, if there are some. sync, continues: as in
 * set_work_options.
 * Statuses: OK, also if there is nothing to complete; ERROR_BUSY, ERROR_IO, ERROR_NOT_FOUND, ERROR_ARGUMENT,
 * ERROR_CORRUPT, ERROR_MEMORY. */
enum tokmap_status set_work_recover(const char *name, bool sync, bool continues, struct tokmap_error *error);

/* Removes unfinished work of complete sets that is there again after a power cut: a folder with shards, without a
 * journal and without names to complete. Does nothing if another writer has the lock. */
void set_work_clear(const char *name);

/* States of the names by NAME.work: nothing is said; the next writer must complete them; they are complete. */
enum set_note { SET_NOTE_NONE, SET_NOTE_NAMING, SET_NOTE_NAMED };
/* Statuses: OK, ERROR_MEMORY. */
enum tokmap_status set_note_find(const char *name, enum set_note *note, struct tokmap_error *error);
/* Returns whether an entry of a folder is a note NAME.work/named. */
bool set_note_is_named(const char *folder, const char *entry);

/* Counts the shards that the manifest of a set names, which must be one that a set has. Statuses: OK, ERROR_EXISTS (it
 * is something else), ERROR_IO, ERROR_NOT_FOUND, ERROR_MEMORY. */
enum tokmap_status set_shards_count(const char *manifest, uint64_t *shards, struct tokmap_error *error);

/* Returns the prefix of a shard, for shard_writer_open() with options.waits, to be freed. NULL without memory. */
char *set_work_shard(const struct set_work *work, uint32_t set, uint64_t number);

/* Returns the folder of the shards, and the lock: files that are no inputs. They stay valid as long as *work. */
const char *set_work_folder(const struct set_work *work);
const char *set_work_lock(const struct set_work *work);

/* Returns the group of files that the commit names, to which the caller may add others; valid until then. */
struct name_files *set_work_group(struct set_work *work);

/* Adds the line of the next shard of a set to its manifest, by its index. The commit does it for all shards; with
 * options.placed the caller has done it for all of them. Statuses: OK, those of index_open(). */
enum tokmap_status set_work_state(struct set_work *work, uint32_t set, const char *index_path,
                                  struct tokmap_error *error);

/* Writes the manifests, and names all files. shards: how many committed shards each set has, 1 to SET_SHARDS_MOST.
 * mask: the shards have masks. Frees the work with every status. After a failure the old sets are unchanged and the
 * shards are gone, unless the folder has a journal or the message says something else. Statuses: OK, ERROR_EXISTS
 * (another process has made a set of the name meanwhile), ERROR_IO, ERROR_MEMORY. *ready: the note is written, so the
 * names are those of the new sets, or the next writer makes them so, also after a failure. */
enum tokmap_status set_work_commit(struct set_work *work, const uint64_t *shards, bool mask, bool *ready,
                                   struct tokmap_error *error);

/* Removes the tokens that sealed shards were made of (shard_writer_commit()), when the shards are committed and will
 * not be continued. */
void set_work_tidy(const struct set_work *work);

/* Frees the work and leaves the folder, for options.keep. NULL is ignored. */
void set_work_leave(struct set_work *work);

/* Removes the shards, the journal (NAME.work/journal), and the lock, and frees the work. NULL is ignored. */
void set_work_abandon(struct set_work *work);

#endif
