/* SPDX-License-Identifier: MIT */
/* file_set.c - see file_set.h. */
#include "file_set.h"

#include <assert.h>
#include <errno.h>

#include "common/error.h"
#include "platform/os.h"

#define BUSY_TRIES 500 /* pauses until another writer has finished */
#define BUSY_PAUSE_NS 2000000

static bool exists(const char *path)
{
    struct os_stat found;
    return !os_lstat(path, &found);
}

static int unlink_any(const char *path)
{
    const int system = os_unlink(path);
    return system == ENOENT ? 0 : system;
}

static int sync_folder(const struct file_set *set)
{
    return os_sync_folder(set->paths[set->count - 1]);
}

/* Removes the files that a killed writer of a first set has renamed: their partial files are gone, and they are not
 * younger than the last one, which was written last. A file that somebody has put there since then is younger, and
 * stays. */
static int remove_first_set(const struct file_set *set)
{
    const uint32_t last = set->count - 1;
    struct os_stat partial, found;
    int system = 0;
    if (exists(set->paths[last]) || os_lstat(set->partials[last], &partial) || !partial.bytes)
        return 0;
    for (uint32_t i = 0; i < last && !system; i++)
        if (!exists(set->partials[i]) && !os_lstat(set->paths[i], &found) && found.modified_ns <= partial.modified_ns)
            system = unlink_any(set->paths[i]);
    return system;
}

int file_set_take_back(const struct file_set *set)
{
    bool saved[FILE_SET_MAX], after = false;
    int system = 0;
    assert(set->count && set->count <= FILE_SET_MAX);
    for (uint32_t i = set->count; i-- > 0;)
        saved[i] = exists(set->replaced[i]);
    for (uint32_t i = set->count; i-- > 0;)
        after = after || saved[i];
    if (!after)
        return remove_first_set(set);
    /* The new set is complete. Its writer was killed at step 4 or 5, and the next one, whose partial file this is,
     * before it had done step 5. */
    if (saved[set->count - 1] && exists(set->paths[set->count - 1]))
        return 0;
    /* Step 1 went from 0 on. So up to the last file that has a saved name, each old file has one, and a file that has
     * none is new. Then the saved ones from the last to the first, so that this stays true until the end. */
    after = false;
    system = sync_folder(set);
    for (uint32_t i = set->count; i-- > 0 && !system;) {
        after = after || saved[i];
        if (after && !saved[i])
            system = unlink_any(set->paths[i]);
    }
    system = system ? system : sync_folder(set);
    for (uint32_t i = set->count; i-- > 0 && !system;)
        if (saved[i])
            system = os_rename(set->replaced[i], set->paths[i]);
    return system ? system : sync_folder(set);
}

int file_set_finish(const struct file_set *set)
{
    bool any = false;
    for (uint32_t i = 0; i < set->count; i++)
        any = any || exists(set->replaced[i]);
    if (!any)
        return 0;
    int fd;
    int system = os_open(set->paths[set->count - 1], OS_READ_NOW, &fd);
    for (int i = 0; !system && (system = os_lock_shared(fd)) == EWOULDBLOCK && i < BUSY_TRIES; i++) {
        os_sleep_ns(BUSY_PAUSE_NS);
        system = 0;
    }
    os_close(fd);
    if (!system) /* the killed writer may not have reached step 4 */
        system = sync_folder(set);
    for (uint32_t i = 0; i < set->count && !system; i++)
        system = unlink_any(set->replaced[i]);
    return system;
}

/* Renames as far as it goes. *at: the file whose rename failed. */
static int rename_all(const struct file_set *set, const bool *made, uint32_t *at)
{
    for (*at = 0; *at < set->count; ++*at) {
        const int system = os_rename(set->paths[*at], set->replaced[*at]);
        if (system && system != ENOENT)
            return system;
    }
    *at = set->count - 1;
    int system = sync_folder(set);
    for (uint32_t i = 0; i < set->count && !system; i++) {
        *at = i;
        system = made[i] ? os_rename(set->partials[i], set->paths[i]) : 0;
    }
    return system;
}

/* Does the same as after a kill, except that a first set has nothing that was saved. */
static void undo(const struct file_set *set, const bool *made)
{
    bool any = false;
    for (uint32_t i = 0; i < set->count; i++)
        any = any || exists(set->replaced[i]);
    if (any)
        (void)file_set_take_back(set);
    else
        for (uint32_t i = 0; i < set->count; i++)
            if (made[i] && !exists(set->partials[i]))
                (void)os_unlink(set->paths[i]);
}

enum tokmap_status file_set_commit(const struct file_set *set, const bool *made, struct tokmap_error *error)
{
    uint32_t at;
    assert(made[set->count - 1]);
    int system = rename_all(set, made, &at);
    if (system) {
        undo(set, made);
        return error_set_system(error, system, set->paths[at], TOKMAP_NO_OFFSET, "the output cannot be renamed");
    }
    system = sync_folder(set);
    if (system)
        return error_set_system(error, system, set->paths[set->count - 1], TOKMAP_NO_OFFSET,
                                "the folder of the output cannot be synchronized with the disk");
    for (uint32_t i = 0; i < set->count; i++)
        (void)unlink_any(set->replaced[i]);
    return TOKMAP_OK;
}
