/* SPDX-License-Identifier: MIT */
/*
 * inject.c - makes one chosen call of a program fail. It is preloaded (LD_PRELOAD) into programs built without
 * sanitizers.
 *
 *     INJECT_KIND    system  the call fails with an errno that is usual for it
 *                    eintr   calls that can be interrupted fail with EINTR; other calls are not counted
 *                    short   reads and writes of more than one byte do half of their work; other calls are not counted
 *                    kill    the process is killed (SIGKILL) instead of the call; the calls are those of `system`, and
 *                            link and rmdir, which change folders
 *                    memory  malloc, calloc, realloc, aligned_alloc, and posix_memalign return no memory
 *                    starved the same, and all later calls return no memory either
 *                    full    the disk is full: it and all later calls that need room for data or a name fail with
 *                            ENOSPC; other calls are not counted. Standard output and error have room
 *                    unlocked it and all later calls of flock fail, with the errno INJECT_ERRNO (a number) or ENOLCK;
 *                            other calls are not counted
 *     INJECT_NUMBER  which of the counted calls fails, from 1; 0 or unset: none
 *     INJECT_REPORT  a file to which the name of the call is written when it fails
 *     INJECT_GONE    a path: "gone" is written to INJECT_REPORT.gone if it does not exist when the call fails
 *     INJECT_ONLY    counts only calls with this name
 *     INJECT_CHANGES if set and not empty, the kind kill counts only calls that change files or folders: a kill instead
 *                    of any other call leaves the same files as one instead of the next of these. INJECT_ONLY has
 *                    precedence
 *     INJECT_COUNT   a file to which the number of counted calls is written when the process ends well
 *     INJECT_LOG     a file to which the calls that matter after a power failure are appended, one per line with tabs:
 *                    "create PATH", "rename FROM TO", "unlink PATH", "fsync PATH", where a fsync has an absolute path.
 *                    It works with every kind, and without one
 *
 * Calls that libc makes itself (open in fopen, write in printf) are not counted. Calls of the program and of other
 * libraries are.
 */
#define _LARGEFILE64_SOURCE 1
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#undef open
#undef openat
#undef pread
#undef pwrite
#undef mmap
#undef ftruncate
#undef fallocate
#undef fstat
#undef stat
#undef lstat
#undef readdir
#undef mkostemp

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

enum kind { NONE, SYSTEM, INTERRUPT, SHORT, KILL, MEMORY, STARVED, FULL, UNLOCKED };

static enum kind kind;
static unsigned long chosen;
static const char *only, *report, *log_path;
static bool changes_only;
static int lock_error = ENOLCK;
static atomic_ulong counted;

__attribute__((constructor)) static void start(void)
{
    const char *name = getenv("INJECT_KIND"), *number = getenv("INJECT_NUMBER");
    only = getenv("INJECT_ONLY");
    report = getenv("INJECT_REPORT");
    log_path = getenv("INJECT_LOG");
    const char *changes = getenv("INJECT_CHANGES");
    changes_only = changes && *changes && !only;
    chosen = number ? strtoul(number, NULL, 10) : 0;
    const char *code = getenv("INJECT_ERRNO");
    lock_error = code && *code ? atoi(code) : ENOLCK;
    if (!name || !chosen)
        return;
    kind = !strcmp(name, "system")     ? SYSTEM
           : !strcmp(name, "eintr")    ? INTERRUPT
           : !strcmp(name, "short")    ? SHORT
           : !strcmp(name, "kill")     ? KILL
           : !strcmp(name, "memory")   ? MEMORY
           : !strcmp(name, "starved")  ? STARVED
           : !strcmp(name, "full")     ? FULL
           : !strcmp(name, "unlocked") ? UNLOCKED
                                       : NONE;
}

/* The file of a call, where that is known; -1 elsewhere. */
static _Thread_local int descriptor = -1;

static void report_write(const char *path, const char *text, size_t bytes)
{
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd >= 0) {
        (void)syscall(SYS_write, fd, text, bytes);
        (void)syscall(SYS_write, fd, "\n", 1L);
        (void)syscall(SYS_close, fd);
    }
}

/* Writes the name of the chosen call to the file INJECT_REPORT, and the path of its file, where it is known, to
 * INJECT_REPORT.file. What INJECT_GONE says is described above. */
static void reported(const char *name)
{
    char path[PATH_MAX], link[64], beside[PATH_MAX];
    report_write(report, name, strlen(name));
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    (void)snprintf(beside, sizeof beside, "%s.file", report);
    const long bytes = descriptor < 0 ? 0 : syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path);
    report_write(beside, path, bytes > 0 ? (size_t)bytes : 0);
    const char *watched = getenv("INJECT_GONE");
    const bool gone = watched && syscall(SYS_faccessat, AT_FDCWD, watched, F_OK);
    (void)snprintf(beside, sizeof beside, "%s.gone", report);
    report_write(beside, "gone", gone ? 4 : 0);
}

/* Counts a call, and returns whether it is the chosen one. It makes its own system calls directly, so that they are not
 * counted. */
static bool now(const char *name)
{
    if (only && strcmp(only, name))
        return false;
    const unsigned long number = atomic_fetch_add(&counted, 1) + 1;
    if (number != chosen)
        return (kind == STARVED || kind == FULL || kind == UNLOCKED) && number > chosen;
    if (report)
        reported(name);
    return true;
}

__attribute__((destructor)) static void stop(void)
{
    const char *path = getenv("INJECT_COUNT");
    char text[24];
    const int count = snprintf(text, sizeof text, "%lu\n", atomic_load(&counted));
    const int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
    if (fd >= 0)
        (void)syscall(SYS_write, fd, text, (size_t)count);
}

/* Appends a call that has succeeded to the log. */
static void logged(const char *name, const char *first, const char *second)
{
    if (!log_path)
        return;
    char line[9000];
    const int count =
        snprintf(line, sizeof line, "%s\t%s%s%s\n", name, first, second ? "\t" : "", second ? second : "");
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd >= 0) {
        (void)syscall(SYS_write, fd, line, (size_t)count);
        (void)syscall(SYS_close, fd);
    }
}

static void logged_fd(const char *name, int fd)
{
    char link[40], path[4100];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t count = log_path ? readlink(link, path, sizeof path - 1) : -1;
    if (count < 0)
        return;
    path[count] = '\0';
    logged(name, path, NULL);
}

/* Whether calls with this name change files or folders. Whether an open does depends on its flags. */
static bool changes_files(const char *name)
{
    static const char *const changing[] = {
        "write",      "writev", "pwrite", "copy_file_range", "ftruncate", "fallocate", "open", "rename",
        "mkostemp64", "unlink", "link",   "mkdir",           "rmdir",
    };
    for (size_t i = 0; i < sizeof changing / sizeof *changing; i++)
        if (!strcmp(name, changing[i]))
            return true;
    return false;
}

/* Never returns if the process is to be killed instead of this call. */
static void kill_at(const char *name)
{
    if (kind == KILL && (!changes_only || changes_files(name)) && now(name))
        (void)kill(getpid(), SIGKILL);
}

/* Returns whether this call is to fail, and then sets errno. */
static bool fails(const char *name, int system, bool interruptible)
{
    kill_at(name);
    if (kind == SYSTEM && now(name)) {
        errno = system;
        return true;
    }
    if (kind == UNLOCKED && !strcmp(name, "flock") && now(name)) {
        errno = lock_error;
        return true;
    }
    if (kind == INTERRUPT && interruptible && now(name)) {
        errno = EINTR;
        return true;
    }
    return false;
}

/* Returns whether a call that needs room is to fail because the disk is full, and then sets errno. */
static bool lacks_room(const char *name, int fd)
{
    const bool failing = kind == FULL && fd != STDOUT_FILENO && fd != STDERR_FILENO && now(name);
    errno = failing ? ENOSPC : errno;
    return failing;
}

static bool open_fails(int folder, const char *path, int flags)
{
    if (kind == KILL && changes_only && !(flags & (O_CREAT | O_TRUNC)))
        return false;
    if (kind == FULL && flags & O_CREAT && syscall(SYS_faccessat, folder, path, F_OK) && lacks_room("open", -1))
        return true;
    return fails("open", flags & O_CREAT ? ENOSPC : EMFILE, true);
}

/* Returns the size of a request of `count` bytes after it was shortened, if it is to be. */
static size_t shortened(const char *name, size_t count)
{
    return kind == SHORT && count > 1 && now(name) ? count / 2 : count;
}

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* A function, and its variant for large files (name64) if both have the same types here. */
#define BOTH(result, name, parameters, arguments, system, interruptible, failure)                                      \
    result name parameters                                                                                             \
    {                                                                                                                  \
        return fails(#name, system, interruptible) ? failure : REAL(name) arguments;                                   \
    }                                                                                                                  \
    result name##64 parameters                                                                                         \
    {                                                                                                                  \
        return fails(#name, system, interruptible) ? failure : REAL(name##64) arguments;                               \
    }
#define ONE(result, name, parameters, arguments, system, interruptible, failure)                                       \
    result name parameters                                                                                             \
    {                                                                                                                  \
        return fails(#name, system, interruptible) ? failure : REAL(name) arguments;                                   \
    }

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

#define OPEN(name, at, at_parameters, at_arguments)                                                                    \
    int name at_parameters                                                                                             \
    {                                                                                                                  \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        mode_t mode = mode_of(flags, more);                                                                            \
        va_end(more);                                                                                                  \
        const int fd = open_fails(at, path, flags) ? -1 : REAL(name) at_arguments;                                     \
        if (fd >= 0 && flags & O_CREAT)                                                                                \
            logged("create", path, NULL);                                                                              \
        return fd;                                                                                                     \
    }
OPEN(open, AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, folder, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))
OPEN(openat64, folder, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))

ssize_t read(int fd, void *into, size_t count)
{
    return fails("read", EIO, true) ? -1 : REAL(read)(fd, into, shortened("read", count));
}
ssize_t pread(int fd, void *into, size_t count, off_t offset)
{
    return fails("pread", EIO, true) ? -1 : REAL(pread)(fd, into, shortened("pread", count), offset);
}
ssize_t pread64(int fd, void *into, size_t count, off64_t offset)
{
    return fails("pread", EIO, true) ? -1 : REAL(pread64)(fd, into, shortened("pread", count), offset);
}
ssize_t write(int fd, const void *from, size_t count)
{
    return lacks_room("write", fd) || fails("write", ENOSPC, true) ? -1
                                                                   : REAL(write)(fd, from, shortened("write", count));
}

static bool pwrite_fails(int fd)
{
    descriptor = fd;
    const bool failing = lacks_room("pwrite", fd) || fails("pwrite", ENOSPC, true);
    descriptor = -1;
    return failing;
}
ssize_t pwrite(int fd, const void *from, size_t count, off_t offset)
{
    return pwrite_fails(fd) ? -1 : REAL(pwrite)(fd, from, shortened("pwrite", count), offset);
}
ssize_t pwrite64(int fd, const void *from, size_t count, off64_t offset)
{
    return pwrite_fails(fd) ? -1 : REAL(pwrite64)(fd, from, shortened("pwrite", count), offset);
}
/* What the compiler calls in place of the functions above where it knows the size of the buffer, or that no mode is
 * given (_FORTIFY_SOURCE). No header declares them. */
#define FORTIFIED(name, parameters, arguments, system, counted)                                                        \
    ssize_t name parameters                                                                                            \
    {                                                                                                                  \
        ssize_t(*function) parameters = (ssize_t(*) parameters)real(#name);                                            \
        if (fails(counted, system, true))                                                                              \
            return -1;                                                                                                 \
        count = shortened(counted, count);                                                                             \
        return function arguments;                                                                                     \
    }
FORTIFIED(__read_chk, (int fd, void *into, size_t count, size_t room), (fd, into, count, room), EIO, "read")
FORTIFIED(__pread_chk, (int fd, void *into, size_t count, off_t offset, size_t room), (fd, into, count, offset, room),
          EIO, "pread")
FORTIFIED(__pread64_chk, (int fd, void *into, size_t count, off64_t offset, size_t room),
          (fd, into, count, offset, room), EIO, "pread")
#define OPEN_2(name, at, parameters, arguments)                                                                        \
    int name parameters                                                                                                \
    {                                                                                                                  \
        int(*function) parameters = (int(*) parameters)real(#name);                                                    \
        return open_fails(at, path, flags) ? -1 : function arguments;                                                  \
    }
OPEN_2(__open_2, AT_FDCWD, (const char *path, int flags), (path, flags))
OPEN_2(__open64_2, AT_FDCWD, (const char *path, int flags), (path, flags))
OPEN_2(__openat_2, folder, (int folder, const char *path, int flags), (folder, path, flags))
OPEN_2(__openat64_2, folder, (int folder, const char *path, int flags), (folder, path, flags))

ONE(ssize_t, readv, (int fd, const struct iovec *pieces, int count), (fd, pieces, count), EIO, true, -1)
ssize_t writev(int fd, const struct iovec *pieces, int count)
{
    return lacks_room("writev", fd) || fails("writev", ENOSPC, true) ? -1 : REAL(writev)(fd, pieces, count);
}
ONE(ssize_t, preadv2, (int fd, const struct iovec *pieces, int count, off_t offset, int flags),
    (fd, pieces, count, offset, flags), EIO, true, -1)
ONE(ssize_t, preadv64v2, (int fd, const struct iovec *pieces, int count, off64_t offset, int flags),
    (fd, pieces, count, offset, flags), EIO, true, -1)
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *into, size_t count, unsigned flags)
{
    return lacks_room("copy_file_range", out) || fails("copy_file_range", EIO, true)
               ? -1
               : REAL(copy_file_range)(in, from, out, into, shortened("copy_file_range", count), flags);
}

BOTH(void *, mmap, (void *at, size_t length, int protection, int flags, int fd, off_t offset),
     (at, length, protection, flags, fd, offset), ENOMEM, false, MAP_FAILED)
BOTH(int, ftruncate, (int fd, off_t length), (fd, length), EIO, true, -1)
#define FALLOCATE(name, type)                                                                                          \
    int name(int fd, int mode, type offset, type length)                                                               \
    {                                                                                                                  \
        return lacks_room("fallocate", fd) || fails("fallocate", ENOSPC, true) ? -1                                    \
                                                                               : REAL(name)(fd, mode, offset, length); \
    }
FALLOCATE(fallocate, off_t)
FALLOCATE(fallocate64, off64_t)
ONE(int, madvise, (void *at, size_t length, int advice), (at, length, advice), EFAULT, false, -1)
int fsync(int fd)
{
    const int result = fails("fsync", EIO, true) ? -1 : REAL(fsync)(fd);
    if (!result)
        logged_fd("fsync", fd);
    return result;
}
ONE(int, fdatasync, (int fd), (fd), EIO, true, -1)
ONE(int, sync_file_range, (int fd, off64_t offset, off64_t count, unsigned flags), (fd, offset, count, flags), EIO,
    false, -1)
ONE(ssize_t, readahead, (int fd, off64_t offset, size_t count), (fd, offset, count), EINVAL, false, -1)
int rename(const char *from, const char *into)
{
    const int result = fails("rename", EIO, false) ? -1 : REAL(rename)(from, into);
    if (!result)
        logged("rename", from, into);
    return result;
}
int unlink(const char *path)
{
    const int result = fails("unlink", EIO, false) ? -1 : REAL(unlink)(path);
    if (!result)
        logged("unlink", path, NULL);
    return result;
}
int link(const char *from, const char *into)
{
    kill_at("link");
    return lacks_room("link", -1) ? -1 : REAL(link)(from, into);
}
int rmdir(const char *path)
{
    kill_at("rmdir");
    return REAL(rmdir)(path);
}
int mkdir(const char *path, mode_t mode)
{
    return lacks_room("mkdir", -1) || fails("mkdir", EACCES, false) ? -1 : REAL(mkdir)(path, mode);
}
ONE(int, flock, (int fd, int how), (fd, how), ENOLCK, true, -1)
ONE(DIR *, opendir, (const char *path), (path), EACCES, false, NULL)
ONE(struct dirent *, readdir, (DIR * folder), (folder), EIO, false, NULL)
ONE(struct dirent64 *, readdir64, (DIR * folder), (folder), EIO, false, NULL)
int mkostemp64(char *pattern, int flags)
{
    return lacks_room("mkostemp64", -1) || fails("mkostemp64", ENOSPC, false) ? -1 : REAL(mkostemp64)(pattern, flags);
}

int fstat(int fd, struct stat *found)
{
    return fails("fstat", EIO, false) ? -1 : REAL(fstat)(fd, found);
}
int fstat64(int fd, struct stat64 *found)
{
    return fails("fstat", EIO, false) ? -1 : REAL(fstat64)(fd, found);
}
int stat(const char *path, struct stat *found)
{
    return fails("stat", EIO, false) ? -1 : REAL(stat)(path, found);
}
int stat64(const char *path, struct stat64 *found)
{
    return fails("stat", EIO, false) ? -1 : REAL(stat64)(path, found);
}
int lstat(const char *path, struct stat *found)
{
    return fails("lstat", EIO, false) ? -1 : REAL(lstat)(path, found);
}
int lstat64(const char *path, struct stat64 *found)
{
    return fails("lstat", EIO, false) ? -1 : REAL(lstat64)(path, found);
}

/* Closes the descriptor in any case, as the kernel does. */
int close(int fd)
{
    bool failing = fails("close", EIO, false);
    int result = REAL(close)(fd);
    if (!failing)
        return result;
    errno = EIO;
    return -1;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument)
{
    return fails("pthread_create", EAGAIN, false) ? EAGAIN : REAL(pthread_create)(thread, attributes, body, argument);
}

/* ---- memory: the functions inside libc are called directly, because dlsym() allocates memory ---- */

static bool refuses(const char *name)
{
    if ((kind != MEMORY && kind != STARVED) || !now(name))
        return false;
    errno = ENOMEM;
    return true;
}
void *malloc(size_t bytes)
{
    return refuses("malloc") ? NULL : __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes)
{
    return refuses("calloc") ? NULL : __libc_calloc(count, bytes);
}
void *realloc(void *old, size_t bytes)
{
    return refuses("realloc") ? NULL : __libc_realloc(old, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes)
{
    return refuses("aligned_alloc") ? NULL : __libc_memalign(alignment, bytes);
}
int posix_memalign(void **into, size_t alignment, size_t bytes)
{
    if (refuses("posix_memalign"))
        return ENOMEM;
    *into = __libc_memalign(alignment, bytes);
    return *into ? 0 : ENOMEM;
}
