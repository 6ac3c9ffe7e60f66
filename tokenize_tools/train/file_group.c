/* SPDX-License-Identifier: MIT */
/* file_group.c - see file_group.h. */
#include "file_group.h"

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

static int sync_folder(const struct file_group *group)
{
    return os_sync_folder(group->paths[group->count - 1]);
}

/* Removes the files that a killed writer of a first group has renamed: their partial files are gone, and they are not
 * younger than the last one, which was written last. A file that somebody has put there since then is younger, and
 * stays. */
static int remove_first_set(const struct file_group *group)
{
    const uint32_t last = group->count - 1;
    struct os_stat partial, found;
    int system = 0;
    if (exists(group->paths[last]) || os_lstat(group->partials[last], &partial) || !partial.bytes)
        return 0;
    for (uint32_t i = 0; i < last && !system; i++)
        if (!exists(group->partials[i]) && !os_lstat(group->paths[i], &found) &&
            found.modified_ns <= partial.modified_ns)
            system = unlink_any(group->paths[i]);
    return system;
}

int file_group_take_back(const struct file_group *group)
{
    bool saved[FILE_GROUP_MAX], after = false;
    int system = 0;
    assert(group->count && group->count <= FILE_GROUP_MAX);
    for (uint32_t i = group->count; i-- > 0;)
        saved[i] = exists(group->replaced[i]);
    for (uint32_t i = group->count; i-- > 0;)
        after = after || saved[i];
    if (!after)
        return remove_first_set(group);
    /* The new group is complete. Its writer was killed at step 4 or 5, and the next one, whose partial file this is,
     * before it had done step 5. */
    if (saved[group->count - 1] && exists(group->paths[group->count - 1]))
        return 0;
    /* Step 1 went from 0 on. So up to the last file that has a saved name, each old file has one, and a file that has
     * none is new. Then the saved ones from the last to the first, so that this stays true until the end. */
    after = false;
    system = sync_folder(group);
    for (uint32_t i = group->count; i-- > 0 && !system;) {
        after = after || saved[i];
        if (after && !saved[i])
            system = unlink_any(group->paths[i]);
    }
    system = system ? system : sync_folder(group);
    for (uint32_t i = group->count; i-- > 0 && !system;)
        if (saved[i])
            system = os_rename(group->replaced[i], group->paths[i]);
    return system ? system : sync_folder(group);
}

int file_group_finish(const struct file_group *group)
{
    bool any = false;
    for (uint32_t i = 0; i < group->count; i++)
        any = any || exists(group->replaced[i]);
    if (!any)
        return 0;
    int fd;
    int system = os_open(group->paths[group->count - 1], OS_READ_NOW, &fd);
    for (int i = 0; !system && (system = os_lock_shared(fd)) == EWOULDBLOCK && i < BUSY_TRIES; i++) {
        os_sleep_ns(BUSY_PAUSE_NS);
        system = 0;
    }
    os_close(fd);
    if (!system) /* the killed writer may not have reached step 4 */
        system = sync_folder(group);
    for (uint32_t i = 0; i < group->count && !system; i++)
        system = unlink_any(group->replaced[i]);
    return system;
}

/* Renames as far as it goes. *at: the file whose rename failed. */
static int rename_all(const struct file_group *group, const bool *made, uint32_t *at)
{
    for (*at = 0; *at < group->count; ++*at) {
        const int system = os_rename(group->paths[*at], group->replaced[*at]);
        if (system && system != ENOENT)
            return system;
    }
    *at = group->count - 1;
    int system = sync_folder(group);
    for (uint32_t i = 0; i < group->count && !system; i++) {
        *at = i;
        system = made[i] ? os_rename(group->partials[i], group->paths[i]) : 0;
    }
    return system;
}

/* Does the same as after a kill, except that a first group has nothing that was saved. */
static void undo(const struct file_group *group, const bool *made)
{
    bool any = false;
    for (uint32_t i = 0; i < group->count; i++)
        any = any || exists(group->replaced[i]);
    if (any)
        (void)file_group_take_back(group);
    else
        for (uint32_t i = 0; i < group->count; i++)
            if (made[i] && !exists(group->partials[i]))
                (void)os_unlink(group->paths[i]);
}

enum tokmap_status file_group_commit(const struct file_group *group, const bool *made, struct tokmap_error *error)
{
    uint32_t at;
    assert(made[group->count - 1]);
    int system = rename_all(group, made, &at);
    if (system) {
        undo(group, made);
        return error_set_system(error, system, group->paths[at], TOKMAP_NO_OFFSET, "the output cannot be renamed");
    }
    system = sync_folder(group);
    if (system)
        return error_set_system(error, system, group->paths[group->count - 1], TOKMAP_NO_OFFSET,
                                "the folder of the output cannot be synchronized with the disk");
    for (uint32_t i = 0; i < group->count; i++)
        (void)unlink_any(group->replaced[i]);
    return TOKMAP_OK;
}
