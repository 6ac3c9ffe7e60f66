/* SPDX-License-Identifier: MIT */
#include "shard_commit.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "index_writer.h"
#include "partial_file.h"
#include "platform/os.h"
#include "shard_ranges.h"
#include "text/path.h"

#define BUSY_TRIES 500 /* pauses until another writer has finished its commit */
#define BUSY_PAUSE_NS 2000000

static const char *const nouns[SHARD_FILE_KINDS] = {[SHARD_MASK] = "the mask",
                                                    [SHARD_TOKENS] = "the tokens",
                                                    [SHARD_SEALED] = "the sealed tokens",
                                                    [SHARD_DROPPED] = "the list of dropped documents"};

/* Returns whether a status of index_open() means that the file cannot be read as an index at all. */
static bool is_no_index(enum tokmap_status status)
{
    return status == TOKMAP_ERROR_FORMAT || status == TOKMAP_ERROR_VERSION || status == TOKMAP_ERROR_CORRUPT ||
           status == TOKMAP_ERROR_TRUNCATED || status == TOKMAP_ERROR_UNSUPPORTED;
}

static bool exists(const char *path)
{
    struct os_stat found;
    return !os_lstat(path, &found);
}

/* Returns whether a caller has named the index, under `index` alone, and each file that has a partial name. */
static bool commit_is_sound(const struct shard_commit *commit)
{
    bool sound = commit->index && commit->index_partial && !commit->names[SHARD_INDEX];
    for (int i = 0; i < SHARD_FILE_KINDS; i++)
        sound = sound && (commit->names[i] || !commit->partials[i]);
    return sound;
}

/* Returns whether a file belongs to an index. A list of dropped documents is that of the index in its saved name. */
static bool has_file(const struct index *index, int file)
{
    return file == SHARD_DROPPED || (file < SHARD_FILES && shard_has_file(index, (enum shard_file)file));
}

static bool is_list(const char *path)
{
    char head[sizeof SHARD_LIST_MAGIC - 1];
    size_t got;
    return os_head_read(path, head, sizeof head, &got) && got == sizeof head && !memcmp(head, SHARD_LIST_MAGIC, got);
}

/* Returns whether a file with a saved name is one; where the list would be, a file of the user may be. */
static bool is_saved(int file, const char *saved)
{
    return file == SHARD_DROPPED ? is_list(saved) : exists(saved);
}

/* ---- commit ---- */

struct committing {
    const struct shard_commit *names;
    char *new_saved[SHARD_FILE_KINDS], *old_saved[SHARD_FILE_KINDS];
    bool new_moved[SHARD_FILE_KINDS], old_moved[SHARD_FILE_KINDS]; /* the saved name is in use */
    bool *visible;
    struct tokmap_error *error;
};

static enum tokmap_status failed(const struct committing *committing, int system, const char *path, const char *what,
                                 const char *state)
{
    return error_set_system(committing->error, system, path, TOKMAP_NO_OFFSET, "%s%s", what, state);
}

static enum tokmap_status sync_last(const struct committing *committing)
{
    const int system = committing->names->sync ? os_sync_folder(committing->names->index) : 0;
    return system ? failed(committing, system, committing->names->index, "the folder cannot be synced",
                           "; the shard is complete, but a power failure could lose it")
                  : TOKMAP_OK;
}

/* Gives a new file its partial name again, because a writer whose state was saved continues with it. Where that fails,
 * the file is removed: without an index it is useless, and nothing would find it. */
static void put_back(const char *named, const char *partial)
{
    if (os_rename(named, partial))
        (void)os_unlink(named);
}

/* Lets the caller remove what is beside the old shard and would not fit the new one. */
static enum tokmap_status last_call(const struct committing *committing)
{
    const struct shard_commit *names = committing->names;
    const enum tokmap_status status = names->last ? names->last(names->last_user, committing->error) : TOKMAP_OK;
    /* It must not reach storage after the new tokens. */
    const int system = !status && names->last && names->sync ? os_sync_folder(names->index) : 0;
    return system ? failed(committing, system, names->index, "the folder cannot be synced", "") : status;
}

/* Renames each file from its partial name, the index last. Nothing refers to the files until then, or what refers to
 * them has the same content. state: what a message says about an old shard. */
static enum tokmap_status rename_plainly(struct committing *committing, bool same, const char *state)
{
    const struct shard_commit *names = committing->names;
    enum tokmap_status status = last_call(committing);
    int file = 0;
    for (; file < SHARD_FILE_KINDS && !status; file++) {
        const int system = names->partials[file] ? os_rename(names->partials[file], names->names[file]) : 0;
        if (system) {
            status = failed(committing, system, names->names[file],
                            file == SHARD_MASK     ? "the mask cannot be renamed"
                            : file == SHARD_TOKENS ? "the tokens cannot be renamed"
                                                   : "the file cannot be renamed",
                            state);
            file--;
        }
    }
    /* No index may reach storage before its files, unless those that are there have the same content. */
    int system = !status && !same && names->sync ? os_sync_folder(names->index) : 0;
    if (system)
        status = failed(committing, system, names->index, "the folder cannot be synced", state);
    system = status ? 0 : os_rename(names->index_partial, names->index);
    if (system)
        status = failed(committing, system, names->index, "the index cannot be renamed", state);
    *committing->visible = !status;
    if (!status && names->names[SHARD_DROPPED] && !names->partials[SHARD_DROPPED]) /* there is no new one */
        (void)os_unlink(names->names[SHARD_DROPPED]);
    for (int i = 0; i < file && status && !same; i++)
        if (names->partials[i])
            put_back(names->names[i], names->partials[i]);
    return status ? status : sync_last(committing);
}

/* For an old index that cannot be read, and for one whose tokens are a file of another program that has our name. Its
 * removal must reach storage before the new tokens do, or a power failure could pair them with the old index. */
static enum tokmap_status remove_first(struct committing *committing)
{
    const struct shard_commit *names = committing->names;
    int system = os_unlink(names->index);
    if (system)
        return failed(committing, system, names->index, "the old index cannot be removed", "");
    system = names->sync ? os_sync_folder(names->index) : 0;
    if (system)
        return failed(committing, system, names->index, "the folder cannot be synced",
                      "; the index of the old shard has already been removed");
    return rename_plainly(committing, false, "; the index of the old shard has already been removed");
}

/* Takes steps 1 and 2 back. If an old file cannot be renamed, it keeps its saved name, under which readers find it. */
static void take_back(struct committing *committing)
{
    const struct shard_commit *names = committing->names;
    for (int i = 0; i < SHARD_FILE_KINDS; i++) {
        if (committing->old_moved[i])
            (void)os_rename(committing->old_saved[i], names->names[i]);
        if (committing->new_moved[i])
            put_back(committing->new_saved[i], names->partials[i]);
    }
}

static enum tokmap_status save_both(struct committing *committing, const struct index *old)
{
    const struct shard_commit *names = committing->names;
    const char *list = committing->old_saved[SHARD_DROPPED];
    if (list && exists(list) && !is_list(list))
        return error_set(committing->error, TOKMAP_ERROR_EXISTS, list, TOKMAP_NO_OFFSET,
                         "the list of dropped documents that is replaced would be kept under this name for a moment, "
                         "and another file has it; move that file away, or choose another name for the output");
    for (int i = 0; i < SHARD_FILE_KINDS; i++) {
        const int system = names->partials[i] ? os_rename(names->partials[i], committing->new_saved[i]) : 0;
        if (system)
            return failed(committing, system, committing->new_saved[i], nouns[i],
                          " cannot be renamed; the old shard is unchanged");
        committing->new_moved[i] = names->partials[i] != NULL;
    }
    for (int i = SHARD_FILE_KINDS - 1; i >= 0; i--) {
        if (!names->names[i] || !has_file(old, i)) {
            const int system = names->names[i] && names->partials[i] ? os_unlink(names->names[i]) : ENOENT;
            if (system && system != ENOENT)
                return failed(committing, system, names->names[i], "a file that belongs to no shard",
                              " cannot be removed; the old shard is unchanged");
            continue;
        }
        const int system = os_rename(names->names[i], committing->old_saved[i]);
        if (system && system != ENOENT)
            return failed(committing, system, names->names[i], nouns[i],
                          " of the old shard cannot be renamed; the old shard is unchanged");
        committing->old_moved[i] = !system;
    }
    return TOKMAP_OK;
}

/* Step 6. A file that cannot be removed now is tried again after step 7, which must not wait for it. */
static void remove_old(struct committing *committing)
{
    for (int i = 0; i < SHARD_FILE_KINDS; i++)
        if (committing->old_moved[i])
            committing->old_moved[i] = os_unlink(committing->old_saved[i]) != 0;
}

/* Ends step 6, for files that could not be removed before. No later writer would remove them: none lists the folder
 * unless a writer was killed. */
static enum tokmap_status remove_rest(struct committing *committing)
{
    for (int i = 0; i < SHARD_FILE_KINDS; i++) {
        const int system = committing->old_moved[i] ? os_unlink(committing->old_saved[i]) : 0;
        if (system && system != ENOENT)
            return failed(committing, system, committing->old_saved[i], nouns[i],
                          " of the shard that was replaced cannot be removed; the new shard is complete, and this file "
                          "only takes up space; remove it");
    }
    return TOKMAP_OK;
}

/* Step 7. */
static enum tokmap_status name_new(struct committing *committing)
{
    const struct shard_commit *names = committing->names;
    for (int i = 0; i < SHARD_FILE_KINDS; i++) {
        const int system = committing->new_moved[i] ? os_rename(committing->new_saved[i], names->names[i]) : 0;
        if (system)
            return failed(committing, system, committing->new_saved[i], nouns[i],
                          " cannot be renamed; the shard is complete and can be read, and the next writer of this name "
                          "renames the file");
    }
    return TOKMAP_OK;
}

static enum tokmap_status replace(struct committing *committing, const struct index *old)
{
    const struct shard_commit *names = committing->names;
    enum tokmap_status status = TOKMAP_OK;
    for (int i = 0; i < SHARD_FILE_KINDS && !status; i++)
        if (names->names[i] && (!(committing->new_saved[i] = shard_file_replaced(names->names[i], names->id)) ||
                                !(committing->old_saved[i] = shard_file_replaced(names->names[i], old->id))))
            status = error_set_memory(committing->error, "a path", strlen(names->names[i]));
    if (!status)
        status = save_both(committing, old);
    int system = !status && names->sync ? os_sync_folder(names->index) : 0;
    if (system)
        status =
            failed(committing, system, names->index, "the folder cannot be synced", "; the old shard is unchanged");
    if (!status)
        status = last_call(committing);
    system = status ? 0 : os_rename(names->index_partial, names->index);
    if (system)
        status =
            failed(committing, system, names->index, "the index cannot be renamed", "; the old shard is unchanged");
    *committing->visible = !status;
    if (status)
        take_back(committing);
    else
        status = sync_last(committing);
    if (!status) {
        remove_old(committing);
        status = name_new(committing);
    }
    if (!status) /* or a power cut could bring old files back when no sign of this writer is left */
        status = sync_last(committing);
    return status ? status : remove_rest(committing);
}

/* Leaves the list as it is if it has its name already, or, without a new one, if it is a file of the user. */
static void list_settle(struct shard_commit *commit)
{
    const char *list = commit->names[SHARD_DROPPED], *partial = commit->partials[SHARD_DROPPED];
    struct os_stat found;
    if (list && (partial ? os_lstat(partial, &found) == ENOENT : !is_list(list)))
        commit->names[SHARD_DROPPED] = commit->partials[SHARD_DROPPED] = NULL;
}

enum tokmap_status shard_commit(const struct shard_commit *asked, bool *visible, struct tokmap_error *error)
{
    assert(commit_is_sound(asked));
    struct shard_commit settled = *asked;
    const struct shard_commit *commit = &settled;
    struct committing committing = {.names = commit, .visible = visible, .error = error};
    struct tokmap_error unread = {0};
    struct index old;
    *visible = false;
    list_settle(&settled);
    enum tokmap_status status = index_open(&old, commit->index, &unread);
    if (status == TOKMAP_ERROR_NOT_FOUND)
        return rename_plainly(&committing, false, "");
    if (is_no_index(status))
        return remove_first(&committing);
    if (status) {
        if (error)
            *error = unread;
        return status;
    }
    bool moves = false;
    for (int i = 0; i < SHARD_FILE_KINDS; i++)
        moves = moves || commit->partials[i] || (commit->names[i] && has_file(&old, i));
    if (commit->names[SHARD_TOKENS] && old.store.offset && exists(commit->names[SHARD_TOKENS]))
        status = remove_first(&committing);
    else if (!moves || old.id == commit->id)
        status = rename_plainly(&committing, true, "; the old shard is unchanged");
    else
        status = replace(&committing, &old);
    index_close(&old);
    for (int i = 0; i < SHARD_FILE_KINDS; i++) {
        free(committing.new_saved[i]);
        free(committing.old_saved[i]);
    }
    return status;
}

/* ---- what a killed writer has left ---- */

/* The files of an index, among them the list. */
struct leftovers {
    struct index index;
    const char *names[SHARD_FILE_KINDS];
    char *saved[SHARD_FILE_KINDS];
    char *list;
};

static void leftovers_close(struct leftovers *left)
{
    for (int i = 0; i < SHARD_FILE_KINDS; i++)
        free(left->saved[i]);
    free(left->list);
    index_close(&left->index);
}

/* Statuses: those of index_open(). */
static enum tokmap_status leftovers_open(struct leftovers *left, const struct shard_commit *commit,
                                         const char *index_path, struct tokmap_error *error)
{
    *left = (struct leftovers){.list = NULL};
    const enum tokmap_status status = index_open(&left->index, index_path, error);
    if (status)
        return status;
    memcpy(left->names, commit->names, sizeof left->names);
    left->list = shard_file_beside(commit->index, SHARD_DROPPED, SHARD_FINAL);
    left->names[SHARD_DROPPED] = left->list;
    bool complete = left->list != NULL;
    for (int i = 0; i < SHARD_FILE_KINDS && complete; i++)
        complete = !left->names[i] || (left->saved[i] = shard_file_replaced(left->names[i], left->index.id));
    if (complete)
        return TOKMAP_OK;
    leftovers_close(left);
    return error_set_memory(error, "a path", strlen(index_path));
}

/* Returns whether a writer may have been killed at steps 5 to 7: a file of the index has only its saved name. An index
 * without files gives no sign, so it is always treated as such a one. */
static bool is_pending(const struct leftovers *left)
{
    const struct index *index = &left->index;
    if (!has_file(index, SHARD_TOKENS) && !has_file(index, SHARD_SEALED) && !has_file(index, SHARD_MASK))
        return true;
    for (int i = 0; i < SHARD_FILE_KINDS; i++)
        if (left->names[i] && has_file(index, i) && !exists(left->names[i]) && is_saved(i, left->saved[i]))
            return true;
    return false;
}

/* Waits until the writer that has renamed the index has ended. */
static int wait_for_writer(const char *index_path)
{
    int fd;
    int system = os_open(index_path, OS_READ_NOW, &fd);
    if (system)
        return system;
    for (int i = 0; (system = os_lock_shared(fd)) == EWOULDBLOCK && i < BUSY_TRIES; i++)
        os_sleep_ns(BUSY_PAUSE_NS);
    os_close(fd);
    return system;
}

struct sweep {
    const char *folder, *name; /* NAME without its folder */
    size_t name_bytes;
    uint64_t keep; /* the id of the current index */
};

/* Removes a file with a saved name. One that cannot be removed only takes up space. */
static int sweep_entry(void *user, const char *entry)
{
    const struct sweep *sweep = user;
    struct shard_name found;
    if (!shard_file_find(entry, strlen(entry), &found) || found.state != SHARD_REPLACED || found.file == SHARD_INDEX ||
        found.stem != sweep->name_bytes || strncmp(entry, sweep->name, found.stem) != 0 || found.id == sweep->keep)
        return 0;
    char *path = path_in(sweep->folder, entry);
    if (path && is_saved(found.file, path))
        (void)os_unlink(path);
    free(path);
    return 0;
}

/* Removes the files that have saved names of other indexes than the current one, whose id is `keep`. */
static void sweep(const char *index_path, uint64_t keep)
{
    char *folder = path_folder(index_path);
    const char *name = path_name(index_path);
    struct sweep sweeping = {.folder = folder,
                             .name = name,
                             .name_bytes = strlen(name) - strlen(shard_file_ending(SHARD_INDEX, SHARD_FINAL)),
                             .keep = keep};
    if (folder)
        (void)os_folder_list(folder, sweep_entry, &sweeping);
    free(folder);
}

/* Does steps 5 to 7 for a writer that was killed. */
static enum tokmap_status complete(const struct shard_commit *commit, const struct leftovers *left,
                                   struct tokmap_error *error)
{
    int system = wait_for_writer(commit->index);
    if (system == EWOULDBLOCK)
        return error_set(error, TOKMAP_ERROR_BUSY, commit->index, TOKMAP_NO_OFFSET,
                         "another process is writing this output; wait for it, or choose another name");
    /* A writer that was killed after step 4 has not synced: the index must not reach storage after its tokens. */
    if (!system && commit->sync)
        system = os_sync_folder(commit->index);
    if (!system)
        sweep(commit->index, left->index.id);
    for (int i = 0; i < SHARD_FILE_KINDS && !system; i++)
        if (left->names[i] && has_file(&left->index, i) && !exists(left->names[i]) && is_saved(i, left->saved[i])) {
            system = os_rename(left->saved[i], left->names[i]);
            system = system == ENOENT ? 0 : system; /* the other writer has ended well */
        }
    return system ? error_set_system(error, system, commit->index, TOKMAP_NO_OFFSET,
                                     "what an earlier writer of this shard has left cannot be completed")
                  : TOKMAP_OK;
}

/* Refuses a shard whose files could not get their saved names, because these are longer than NAME.tmx.partial. Without
 * this check, the commit would say so, after all the work. */
static enum tokmap_status saved_names_check(const struct shard_commit *commit, const struct leftovers *left,
                                            struct tokmap_error *error)
{
    struct os_stat found;
    for (int i = 0; i < SHARD_FILE_KINDS; i++) {
        const bool there = i == SHARD_DROPPED ? exists(left->list) : has_file(&left->index, i);
        if (left->saved[i] && (there || commit->partials[i]) && os_lstat(left->saved[i], &found) == ENAMETOOLONG)
            return error_set_system(error, ENAMETOOLONG, commit->index, TOKMAP_NO_OFFSET,
                                    "the shard exists and cannot be replaced, because its files get names that are %d "
                                    "bytes longer meanwhile; choose a shorter name, or remove this shard first",
                                    SHARD_ID_DIGITS + 1);
    }
    return TOKMAP_OK;
}

enum tokmap_status shard_recover(const struct shard_commit *commit, struct tokmap_error *error)
{
    assert(commit_is_sound(commit));
    struct leftovers left;
    struct tokmap_error unread = {0};
    enum tokmap_status status = leftovers_open(&left, commit, commit->index, &unread);
    if (status == TOKMAP_ERROR_NOT_FOUND || is_no_index(status))
        return TOKMAP_OK;
    if (status) {
        if (error)
            *error = unread;
        return status;
    }
    status = saved_names_check(commit, &left, error);
    if (!status && is_pending(&left))
        status = complete(commit, &left, error);
    leftovers_close(&left);
    return status;
}

/* Returns whether a file has the size and the first ranges that the index says. */
static bool content_belongs(const struct index *index, enum shard_file file, const char *path)
{
    const uint64_t end = file == SHARD_SEALED ? min64(BLOCK_BYTES / FRAME_BYTES, shard_ranges(index, file)) : 1;
    struct sealed_reader *reader = NULL;
    const uint64_t whole = shard_file_size(index, file);
    uint64_t from, bytes;
    struct os_stat found;
    size_t got;
    int fd;
    if (os_open(path, OS_READ_NOW, &fd))
        return false;
    bool good = !os_fstat(fd, &found) && found.kind == OS_KIND_FILE && found.bytes == whole;
    if (good && whole && (good = !shard_ranges_place(index, file, 0, end, &from, &bytes, NULL))) {
        uint8_t *read = malloc(bytes);
        good = read && !os_pread(fd, read, bytes, from, &got) && got == bytes &&
               !shard_ranges_check(index, file, 0, end, path, read, &reader, NULL);
        free(read);
    }
    sealed_reader_free(reader);
    os_close(fd);
    return good;
}

/* Returns the same for a saved name, which is enough to know a list. */
static bool belongs(const struct index *index, int file, const char *path)
{
    return file == SHARD_DROPPED ? is_list(path) : content_belongs(index, (enum shard_file)file, path);
}

/* Gives a file of the index its partial name again, if nothing has that and the file is the one that the index means.
 */
static int file_take_back(const struct index *index, int file, const char *named, const char *partial, bool *moved)
{
    if (exists(partial) || !belongs(index, file, named))
        return 0;
    const int system = os_rename(named, partial);
    *moved = *moved || !system;
    return system;
}

int shard_take_back(const struct shard_commit *commit)
{
    struct leftovers left;
    bool moved = false;
    int system = 0;
    const enum tokmap_status status = leftovers_open(&left, commit, commit->index_partial, NULL);
    if (status)
        return status == TOKMAP_ERROR_MEMORY ? ENOMEM : 0;
    const bool replaces = exists(commit->index);
    for (int i = 0; i < SHARD_FILE_KINDS && !system; i++) {
        if (i == SHARD_SEALED || !commit->partials[i] || !has_file(&left.index, i))
            continue;
        system = file_take_back(&left.index, i, left.saved[i], commit->partials[i], &moved);
        if (!system && !replaces && i != SHARD_DROPPED)
            system = file_take_back(&left.index, i, commit->names[i], commit->partials[i], &moved);
    }
    leftovers_close(&left);
    /* The index, which alone says whose the files are, is removed next. */
    return !system && moved && commit->sync ? os_sync_folder(commit->index) : system;
}

void shard_remove_saved(const struct shard_commit *commit)
{
    assert(commit_is_sound(commit));
    struct leftovers left;
    if (leftovers_open(&left, commit, commit->index, NULL))
        return; /* shard_recover() reports it, or there is nothing to replace */
    if (!is_pending(&left))
        sweep(commit->index, left.index.id);
    leftovers_close(&left);
}

static int remove_saved(void *user)
{
    shard_remove_saved(user);
    return 0;
}

enum tokmap_status shard_commit_lock(const struct shard_commit *commit, const struct index *old, const char *what,
                                     int *fd, struct tokmap_error *error)
{
    struct os_stat now;
    int system = partial_file_open(commit->index_partial, remove_saved, (void *)(uintptr_t)commit, fd);
    if (system == EWOULDBLOCK)
        return error_set(error, TOKMAP_ERROR_BUSY, commit->index_partial, TOKMAP_NO_OFFSET,
                         "another process is writing this shard; wait for it");
    if (system)
        return index_copy_failed(system, commit->index_partial, what, error);
    system = os_stat(commit->index, &now);
    if (system)
        return index_copy_failed(system, commit->index, what, error);
    if (now.inode != old->inode || now.device != old->device)
        return error_set(error, TOKMAP_ERROR_BUSY, commit->index, TOKMAP_NO_OFFSET,
                         "the shard was replaced by another process; call again");
    return shard_recover(commit, error);
}

void shard_settle(const char *prefix)
{
    char *paths[SHARD_FILE_KINDS], *partial = shard_file_path(prefix, SHARD_INDEX, SHARD_PARTIAL);
    struct shard_commit commit = {.index_partial = partial};
    bool complete = partial != NULL;
    int fd;
    for (int i = 0; i < SHARD_FILE_KINDS; i++) {
        paths[i] = shard_file_path(prefix, (enum shard_file)i, SHARD_FINAL);
        commit.names[i] = i == SHARD_INDEX ? NULL : paths[i];
        complete = complete && paths[i];
    }
    commit.index = paths[SHARD_INDEX];
    if (complete && !partial_file_open(partial, NULL, NULL, &fd)) {
        shard_remove_saved(&commit);
        (void)os_unlink(partial);
        (void)os_sync_folder(commit.index); /* what told that a writer was killed is removed next */
        os_close(fd);
    }
    for (int i = 0; i < SHARD_FILE_KINDS; i++)
        free(paths[i]);
    free(partial);
}

int shard_take_over(const struct shard_commit *commit)
{
    assert(commit_is_sound(commit));
    struct os_stat found;
    struct leftovers left;
    const int missing = os_lstat(commit->index, &found);
    if (!missing)
        shard_remove_saved(commit);
    if (missing != ENOENT)
        return missing;
    const enum tokmap_status status = leftovers_open(&left, commit, commit->index_partial, NULL);
    if (status)
        return status == TOKMAP_ERROR_MEMORY ? ENOMEM : 0;
    int system = 0;
    for (int i = 0; i < SHARD_FILE_KINDS && !system; i++) {
        const char *name = left.names[i], *saved = left.saved[i];
        if (!name || !has_file(&left.index, i))
            continue;
        if (i == SHARD_SEALED && (exists(saved) || exists(name)) && sealed_load(NULL, NULL))
            system = ELIBACC;
        else if (belongs(&left.index, i, saved)) /* the old index was there, and somebody has removed it since */
            system = os_unlink(saved);
        if (!system && i != SHARD_DROPPED && belongs(&left.index, i, name))
            system = os_unlink(name);
    }
    leftovers_close(&left);
    return system;
}
