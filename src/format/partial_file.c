/* SPDX-License-Identifier: MIT */
/*
 * partial_file.c - see partial_file.h.
 *
 * Example: a killed writer has left web.tmx.partial, and two writers start.
 *
 *     A  creates: the file exists. Opens and locks what was left
 *     B  creates: the file exists. Opens it, cannot lock it: another process is writing
 *     A  compares the name with the locked file, which is the same. Removes it, creates a new one, and locks that
 *
 * If B opens the file before A removes it and locks it after A has closed it, B has locked a file that has no name any
 * more, which the comparison shows, and B begins again.
 */
#include "partial_file.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"

#define TRIES 100

/* Locks an open file. *stale: the name does not refer to it any more. */
static int lock_named(int fd, const char *path, bool *stale)
{
    struct os_stat locked, named;
    *stale = false;
    int system = os_lock(fd);
    if (!system)
        system = os_fstat(fd, &locked);
    if (system)
        return system;
    const int missing = os_lstat(path, &named);
    *stale = missing == ENOENT || (!missing && (named.inode != locked.inode || named.device != locked.device));
    return *stale ? 0 : missing;
}

/* Removes a file that no process has locked. Success also if there is none any more. */
static int remove_leftover(const char *path, int (*leftover)(void *user), void *user)
{
    struct os_stat found;
    int fd;
    bool stale = false;
    int system = os_open(path, OS_WRITE_OLD, &fd);
    if (system)
        return system == ENOENT ? 0 : system;
    system = os_fstat(fd, &found);
    if (!system && found.kind != OS_KIND_FILE) /* no writer makes a pipe or a device */
        system = EINVAL;
    if (!system)
        system = lock_named(fd, path, &stale);
    if (!system && !stale && leftover)
        system = leftover(user);
    if (!system && !stale)
        system = os_unlink(path);
    os_close(fd);
    return system;
}

int partial_file_reopen(const char *path, int *fd)
{
    struct os_stat found;
    int system = os_open(path, OS_WRITE_OLD, fd);
    if (system) {
        *fd = -1;
        return system;
    }
    system = os_fstat(*fd, &found);
    if (!system && found.kind != OS_KIND_FILE)
        system = EINVAL;
    if (!system && !os_is_own(*fd))
        system = EPERM;
    if (system) {
        os_close(*fd);
        *fd = -1;
    }
    return system;
}

/* Removes the empty file that this process has created just now and cannot lock, if the name is still its own. Where
 * there are no locks, nobody else can have taken it. Should they work for another process at this very moment, that one
 * would lose its file between these calls, and fail when it gives the file its name. */
static void created_remove(int fd, const char *path)
{
    struct os_stat created, named;
    if (!os_fstat(fd, &created) && !os_lstat(path, &named) && named.inode == created.inode &&
        named.device == created.device)
        (void)os_unlink(path);
}

/* Locks a file that was opened just now. If that fails, or if its name belongs to another file by now, the file is
 * closed. created: by this process, and removed if there are no locks. *locked: it is locked. */
static int lock_or_close(int *fd, const char *path, bool created, bool *locked)
{
    bool stale = false;
    int system = lock_named(*fd, path, &stale);
    *locked = !system && !stale;
    if (created && system == ENOLCK)
        created_remove(*fd, path);
    if (!*locked) {
        os_close(*fd);
        *fd = -1;
    }
    return system;
}

int partial_file_take(const char *path, int *fd)
{
    for (int try = 0; try < TRIES; try++) {
        bool locked = false;
        int system = partial_file_reopen(path, fd);
        if (!system)
            system = lock_or_close(fd, path, false, &locked);
        if (system || locked)
            return system;
    }
    return EWOULDBLOCK; /* other processes keep creating and removing the file */
}

bool partial_file_begins(const char *path, const char *head)
{
    char found[64];
    const size_t bytes = strlen(head);
    size_t got = 0;
    int fd;
    assert(bytes <= sizeof found);
    if (os_open(path, OS_READ_OWN, &fd))
        return false;
    bool begins = !os_pread(fd, found, bytes, 0, &got);
    for (size_t i = 0; i < got && begins; i++)
        begins = !found[i] || found[i] == head[i];
    os_close(fd);
    return begins;
}

int partial_file_open(const char *path, int (*leftover)(void *user), void *user, int *fd)
{
    for (int try = 0; try < TRIES; try++) {
        bool locked = false;
        int system = os_open(path, OS_WRITE_NEW, fd);
        if (system == EEXIST) {
            *fd = -1;
            system = remove_leftover(path, leftover, user);
            if (system)
                return system;
            continue;
        }
        if (system)
            *fd = -1;
        else
            system = lock_or_close(fd, path, true, &locked);
        if (system || locked)
            return system;
    }
    return EWOULDBLOCK; /* other processes keep creating and removing the file */
}

enum tokmap_status partial_file_failed(int system, const char *path, struct tokmap_error *error)
{
    if (system == EWOULDBLOCK)
        return error_set(error, TOKMAP_ERROR_BUSY, path, TOKMAP_NO_OFFSET,
                         "another process is writing this output; wait for it, or choose another name");
    return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "%s",
                            system == ENOENT ? "the folder of the output does not exist; create it with 'mkdir -p'"
                            : system == EACCES || system == EPERM
                                ? "the output cannot be created; its folder may not be writable for you, or the file "
                                  "may belong to another user"
                                : "the output cannot be created");
}
