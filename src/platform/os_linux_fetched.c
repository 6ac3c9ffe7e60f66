/* SPDX-License-Identifier: MIT */
/*
 * os_linux_fetched.c - os.h: files that are fetched, and the calls that a cache of them needs.
 *
 * A descriptor is looked up in a table of two levels, because there may be a million: groups of GROUP descriptors,
 * which are made when one of them is set and stay. A process without such files reads one word.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hash.h"
#include "os.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define GROUP 1024
#define GROUPS 1024

struct group {
    struct os_fetched *files[GROUP]; /* accessed atomically */
};
static struct group *groups[GROUPS]; /* accessed atomically */
static uint32_t set_ever;            /* some descriptor was set; accessed atomically */

struct os_fetched *os_fetched_of(int fd)
{
    if (!__atomic_load_n(&set_ever, __ATOMIC_ACQUIRE) || fd < 0 || fd >= GROUP * GROUPS)
        return NULL;
    const struct group *group = __atomic_load_n(&groups[fd / GROUP], __ATOMIC_ACQUIRE);
    return group ? __atomic_load_n(&group->files[fd % GROUP], __ATOMIC_ACQUIRE) : NULL;
}

int os_fetched_set(int fd, struct os_fetched *file)
{
    if (fd < 0 || fd >= GROUP * GROUPS)
        return ENOMEM;
    struct group *group = __atomic_load_n(&groups[fd / GROUP], __ATOMIC_ACQUIRE), *none = NULL;
    if (!group) {
        struct group *made = calloc(1, sizeof *made);
        if (!made)
            return ENOMEM;
        if (__atomic_compare_exchange_n(&groups[fd / GROUP], &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            group = made;
        else
            free(made);
        group = group ? group : none;
    }
    if (file)
        file->users = 1;
    os_process_lock(); /* no thread is between finding a file and holding it */
    __atomic_store_n(&group->files[fd % GROUP], file, __ATOMIC_RELEASE);
    os_process_unlock();
    __atomic_store_n(&set_ever, 1, __ATOMIC_RELEASE);
    return 0;
}

struct os_fetched *os_fetched_hold(int fd)
{
    if (!os_fetched_of(fd))
        return NULL;
    os_process_lock();
    struct os_fetched *file = os_fetched_of(fd);
    if (file)
        (void)__atomic_add_fetch(&file->users, 1, __ATOMIC_ACQ_REL);
    os_process_unlock();
    return file;
}

void os_fetched_release(struct os_fetched *file)
{
    if (file && !__atomic_sub_fetch(&file->users, 1, __ATOMIC_ACQ_REL))
        file->close(file);
}

int os_map_shared(int fd, uint64_t bytes, void **address)
{
    void *mapped = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    *address = mapped == MAP_FAILED ? NULL : mapped;
    return mapped == MAP_FAILED ? errno : 0;
}

int os_map_fill(void *address, uint64_t bytes)
{
    const uintptr_t skipped = (uintptr_t)address % os_page_bytes();
    const int failed = madvise((char *)address - skipped, (size_t)(bytes + skipped), MADV_POPULATE_WRITE);
    return failed && errno == EFAULT ? ENOSPC : 0;
}

int os_punch(int fd, uint64_t offset, uint64_t bytes)
{
    if (!TEMP_FAILURE_RETRY(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes)))
        return 0;
    return errno == EOPNOTSUPP || errno == ENOSYS ? ENOTSUP : errno;
}

static int byte_lock(int fd, int command, short type, uint64_t at, struct flock *lock)
{
    *lock = (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)at, .l_len = 1};
    return fcntl(fd, command, lock) ? errno : 0;
}

int os_byte_lock(int fd, uint64_t at)
{
    struct flock lock;
    const int system = byte_lock(fd, F_SETLK, F_WRLCK, at, &lock);
    return system == EACCES || system == EAGAIN ? EWOULDBLOCK : system;
}

void os_byte_unlock(int fd, uint64_t at)
{
    struct flock lock;
    (void)byte_lock(fd, F_SETLK, F_UNLCK, at, &lock);
}

bool os_byte_is_locked(int fd, uint64_t at)
{
    struct flock lock;
    return !byte_lock(fd, F_GETLK, F_WRLCK, at, &lock) && lock.l_type != F_UNLCK;
}

bool os_is_private(int fd)
{
    struct stat found;
    return !fstat(fd, &found) && found.st_uid == geteuid() && !(found.st_mode & (S_IWGRP | S_IWOTH));
}

int os_make_private(const char *folder)
{
    return chmod(folder, S_IRWXU) ? errno : 0;
}

uint64_t os_boot_id(void)
{
    char text[64];
    size_t got = 0;
    int fd;
    if (os_open("/proc/sys/kernel/random/boot_id", OS_READ_NOW, &fd))
        return 0;
    const int system = os_read(fd, text, sizeof text, &got);
    os_close(fd);
    return system ? 0 : hash64(text, got) | 1;
}
