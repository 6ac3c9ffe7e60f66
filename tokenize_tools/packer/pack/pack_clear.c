/* SPDX-License-Identifier: MIT */
/* pack_clear.c - see pack_clear.h. */
#include "pack_clear.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "format/partial_file.h"
#include "format/shard_file.h"
#include "pack_also.h"
#include "platform/os.h"
#include "shuffle/shuffle.h"
#include "text/path.h"
#include "work/set_commit.h"
#include "work/stage_file.h"
#include "work/task_status.h"
#include "work/unit_names.h"
#include "work/work_busy.h"
#include "work/work_folder.h"

struct clearing {
    const char *folder;
    bool inside;  /* true in a folder of a unit */
    bool journal; /* true if there was a journal, so that files of a shuffle and torn files of stages are ours */
    bool left;    /* true if the journal is still there, so that the note stays for the next process */
    bool refused; /* true if there was no memory to remove an entry */
};

/* Returns true if units and tasks have made an entry, and not the user. */
static bool is_ours(const struct clearing *clearing, const char *entry, bool *is_folder)
{
    static const char *const names[] = {"journal", "journal.new", "naming", "naming.partial"};
    bool named = false;
    *is_folder = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        named = named || (clearing->inside && !strcmp(entry, names[i]));
    if (clearing->inside)
        return named || shard_file_waits(entry) || shuffle_is_name(entry);
    return unit_is_name(entry, is_folder) || task_status_is_name(entry) ||
           (!clearing->left && set_note_is_named(clearing->folder, entry)) ||
           stage_is_ours(clearing->folder, entry, clearing->journal) || (clearing->journal && shuffle_is_name(entry));
}

static int entry_remove(void *user, const char *entry)
{
    struct clearing *clearing = user;
    bool is_folder;
    if (!is_ours(clearing, entry, &is_folder))
        return 0;
    char *path = path_in(clearing->folder, entry);
    if (path && is_folder) {
        struct clearing below = {.folder = path, .inside = true};
        const int system = os_folder_list(path, entry_remove, &below);
        (void)os_remove_folder(path);
        clearing->refused = clearing->refused || below.refused || system == ENOMEM;
    } else if (path) {
        (void)os_unlink(path);
    }
    clearing->refused = clearing->refused || !path;
    free(path);
    return 0;
}

void pack_clear_unit(const char *folder, uint64_t unit)
{
    char *path = unit_path(folder, unit, ".work");
    struct clearing below = {.folder = path, .inside = true};
    if (path) {
        (void)os_folder_list(path, entry_remove, &below);
        (void)os_remove_folder(path);
    }
    free(path);
}

/* Removes the journal first: files without a journal are not work, whatever a process that is killed here leaves of
 * them. */
enum tokmap_status pack_clear_work(const char *folder, bool sync, struct tokmap_error *error)
{
    struct clearing clearing = {.folder = folder};
    struct os_stat found;
    char *journal = path_in(folder, "journal");
    if (!journal)
        return error_set_memory(error, "the end of the work", 0);
    if (set_folder_is_link(folder)) {
        free(journal);
        return set_folder_link_error(folder, error);
    }
    clearing.journal = partial_file_begins(journal, SET_JOURNAL_HEAD);
    if (clearing.journal)
        (void)os_unlink(journal);
    clearing.left = !os_lstat(journal, &found);
    int system = sync ? os_sync_folder(journal) : 0;
    system = system == ENOENT ? 0 : system; /* another process has removed the folder */
    free(journal);
    if (system)
        return error_set_system(error, system, folder, TOKMAP_NO_OFFSET, "the folder cannot be synced");
    /* Twice, because memory may have been short. Other files are the user's. */
    for (int i = 0; i < 2; i++) {
        clearing.refused = false;
        clearing.refused = os_folder_list(folder, entry_remove, &clearing) == ENOMEM || clearing.refused;
        if (!os_remove_folder(folder))
            return TOKMAP_OK;
    }
    return clearing.refused ? error_set_memory(error, "removing the unfinished work, which is over", 0) : TOKMAP_OK;
}

void pack_clear_settle(const struct pack_options *options, const char *folder)
{
    int fd;
    char *note = path_in(folder, "named");
    char *lock = path_ended(options->prefix, ".partial");
    const bool over = lock && !work_folder_exists(options->prefix) && !pack_also_begun(options->prefix);
    if (over && !set_folder_is_link(folder) && !partial_file_open(lock, NULL, NULL, &fd)) {
        (void)pack_clear_work(folder, options->sync, NULL);
        if (options->sync && note) /* or a power cut could bring it back, beside the journal of other work */
            (void)os_sync_folder(note);
        (void)os_unlink(lock);
        os_close(fd);
    }
    free(note);
    free(lock);
}

enum tokmap_status pack_clear_start(const char *name, const char *folder, struct tokmap_error *error)
{
    struct os_stat found;
    int fd = -1;
    if (os_lstat(folder, &found) == ENOENT)
        return TOKMAP_OK;
    if (set_folder_is_link(folder))
        return set_folder_link_error(folder, error);
    char *lock = path_ended(name, ".partial");
    if (!lock)
        return error_set_memory(error, "a path", 0);
    /* If the lock fails for another reason, such as a folder of this name, the work that follows reports it, if it
     * needs the lock. */
    const int system = partial_file_open(lock, NULL, NULL, &fd);
    enum tokmap_status status =
        system == EWOULDBLOCK ? work_locked_error(name, error) : work_idle_check(name, folder, error);
    if (!status)
        status = pack_clear_work(folder, false, error);
    if (!system)
        (void)os_unlink(lock);
    os_close(fd);
    free(lock);
    return status;
}
