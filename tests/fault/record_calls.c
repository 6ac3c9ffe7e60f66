/* SPDX-License-Identifier: MIT */
/*
 * record_calls.c - writes down each call of a program that changes files, with its bytes. It is preloaded (LD_PRELOAD)
 * into programs that are built without sanitizers. power_cuts.py reads the log and computes from it what storage may
 * hold after a power cut. Nothing is synced: the log says what the program asked for, and that is all that counts.
 *
 *     RECORD_LOG   the file to which the calls are appended; without it, calls are only passed on
 *
 * A call is a head of six little-endian numbers of 8 bytes, and then two paths and data:
 *
 *     kind, inode, offset or size, bytes of the first path, of the second path, of the data
 *
 * Calls of several threads are recorded in the order in which they were made: a mutex is held during each of them.
 * Files without a name (O_TMPFILE) are not recorded, since no power cut keeps them.
 */
#define _LARGEFILE64_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#undef open
#undef pwrite
#undef ftruncate

enum kind { CREATE = 1, WRITE, TRUNCATE, SYNC, RENAME, UNLINK, MAKE_FOLDER, REMOVE_FOLDER };

static int log_fd = -1;
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("RECORD_LOG");
    if (path)
        log_fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (path && log_fd < 0)
        _exit(99);
}

static void put(enum kind kind, uint64_t inode, uint64_t at, const char *first, const char *second, const void *data,
                size_t bytes)
{
    if (log_fd < 0)
        return;
    const size_t paths[2] = {first ? strlen(first) : 0, second ? strlen(second) : 0};
    uint64_t head[6] = {kind, inode, at, paths[0], paths[1], bytes};
    const void *const pieces[4] = {head, first, second, data};
    const size_t sizes[4] = {sizeof head, paths[0], paths[1], bytes};
    for (int i = 0; i < 4; i++)
        if (sizes[i] && syscall(SYS_write, log_fd, pieces[i], sizes[i]) != (ssize_t)sizes[i])
            _exit(99);
}

/* Whether a descriptor is that of a file with a name. */
static bool named(int fd, uint64_t *inode)
{
    struct stat found;
    const bool good = log_fd >= 0 && !fstat(fd, &found) && S_ISREG(found.st_mode) && found.st_nlink;
    *inode = good ? (uint64_t)found.st_ino : 0;
    return good;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static int begin(void)
{
    return pthread_mutex_lock(&order);
}
static void end(void)
{
    const int kept = errno;
    (void)pthread_mutex_unlock(&order);
    errno = kept;
}

/* ---- files ---- */

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...)                                                                         \
    {                                                                                                                  \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        const bool makes = flags & O_CREAT, makes_some = makes || (flags & O_TMPFILE) == O_TMPFILE;                    \
        const mode_t mode = makes_some ? va_arg(more, mode_t) : 0;                                                     \
        va_end(more);                                                                                                  \
        uint64_t inode;                                                                                                \
        begin();                                                                                                       \
        const bool fresh = makes && access(path, F_OK);                                                                \
        const int fd = REAL(name)(path, flags, mode);                                                                  \
        if (fd >= 0 && named(fd, &inode) && fresh)                                                                     \
            put(CREATE, inode, 0, path, NULL, NULL, 0);                                                                \
        else if (fd >= 0 && flags & O_TRUNC && named(fd, &inode))                                                      \
            put(TRUNCATE, inode, 0, NULL, NULL, NULL, 0);                                                              \
        end();                                                                                                         \
        return fd;                                                                                                     \
    }
OPEN(open)
OPEN(open64)

static void written(int fd, const void *from, ssize_t count, uint64_t offset)
{
    uint64_t inode;
    if (count > 0 && named(fd, &inode))
        put(WRITE, inode, offset, NULL, NULL, from, (size_t)count);
}

ssize_t write(int fd, const void *from, size_t count)
{
    begin();
    const off_t at = lseek(fd, 0, SEEK_CUR);
    const ssize_t done = REAL(write)(fd, from, count);
    written(fd, from, done, at < 0 ? 0 : (uint64_t)at);
    end();
    return done;
}

#define PWRITE(name, type)                                                                                             \
    ssize_t name(int fd, const void *from, size_t count, type offset)                                                  \
    {                                                                                                                  \
        begin();                                                                                                       \
        const ssize_t done = REAL(name)(fd, from, count, offset);                                                      \
        written(fd, from, done, (uint64_t)offset);                                                                     \
        end();                                                                                                         \
        return done;                                                                                                   \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

/* The callers copy with read and write instead. */
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *into, size_t count, unsigned flags)
{
    (void)in, (void)from, (void)out, (void)into, (void)count, (void)flags;
    errno = EOPNOTSUPP;
    return -1;
}

#define TRUNCATES(name, type)                                                                                          \
    int name(int fd, type length)                                                                                      \
    {                                                                                                                  \
        uint64_t inode;                                                                                                \
        begin();                                                                                                       \
        const int result = REAL(name)(fd, length);                                                                     \
        if (!result && named(fd, &inode))                                                                              \
            put(TRUNCATE, inode, (uint64_t)length, NULL, NULL, NULL, 0);                                               \
        end();                                                                                                         \
        return result;                                                                                                 \
    }
TRUNCATES(ftruncate, off_t)
TRUNCATES(ftruncate64, off64_t)

static int sync_recorded(int fd)
{
    struct stat found;
    begin();
    const int result = fstat(fd, &found);
    if (!result && log_fd >= 0)
        put(SYNC, (uint64_t)found.st_ino, 0, NULL, NULL, NULL, 0);
    end();
    return result;
}
int fsync(int fd)
{
    return sync_recorded(fd);
}
int fdatasync(int fd)
{
    return sync_recorded(fd);
}
int sync_file_range(int fd, off64_t offset, off64_t count, unsigned flags)
{
    (void)fd, (void)offset, (void)count, (void)flags;
    return 0;
}

/* ---- names ---- */

int rename(const char *from, const char *into)
{
    begin();
    const int result = REAL(rename)(from, into);
    if (!result)
        put(RENAME, 0, 0, from, into, NULL, 0);
    end();
    return result;
}
int unlink(const char *path)
{
    begin();
    const int result = REAL(unlink)(path);
    if (!result)
        put(UNLINK, 0, 0, path, NULL, NULL, 0);
    end();
    return result;
}
int rmdir(const char *path)
{
    begin();
    const int result = REAL(rmdir)(path);
    if (!result)
        put(REMOVE_FOLDER, 0, 0, path, NULL, NULL, 0);
    end();
    return result;
}
int mkdir(const char *path, mode_t mode)
{
    struct stat found;
    begin();
    const int result = REAL(mkdir)(path, mode);
    if (!result && !stat(path, &found))
        put(MAKE_FOLDER, (uint64_t)found.st_ino, 0, path, NULL, NULL, 0);
    end();
    return result;
}
/* The order of names and contents that a second name needs is not computed. */
int link(const char *from, const char *into)
{
    (void)from, (void)into;
    errno = EPERM;
    return -1;
}
