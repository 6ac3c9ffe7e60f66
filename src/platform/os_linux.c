/* SPDX-License-Identifier: MIT */
/*
 * os_linux.c - os.h for Linux: files, folders, page cache, and memory. os_linux_system.c has time, threads, and shared
 * libraries, and what concerns NUMA nodes, process_linux.c signals and child processes.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "os.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/bytes.h"

/* The most bytes that the kernel reads or writes in one call. */
#define ONE_CALL ((size_t)0x7ffff000)
#define HUGE_PAGE ((uint64_t)2 << 20)
#define CACHE_LINE 64
#define FETCHED_PIECE ((uint64_t)1 << 20)

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* on every architecture but Alpha */
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* ---- the end of waits ---- */

static int wake_fd = -1; /* poll() ignores -1 */

void os_wake_set(int fd)
{
    wake_fd = fd;
}

int os_wake(void)
{
    return wake_fd;
}

/* ---- files ---- */

static const int open_flags[] = {
    [OS_READ] = O_RDONLY | O_CLOEXEC,
    [OS_READ_DIRECT] = O_RDONLY | O_CLOEXEC | O_DIRECT,
    [OS_WRITE_NEW] = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
    [OS_WRITE_OPEN] = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
    [OS_WRITE_OLD] = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
    [OS_WRITE_ONLY] = O_WRONLY | O_CLOEXEC,
    [OS_WRITE_UNNAMED] = O_RDWR | O_TMPFILE | O_CLOEXEC,
    [OS_READ_NOW] = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
    [OS_READ_OWN] = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC,
};

/* For file systems without O_TMPFILE: a file with a new name, which is removed at once. */
static int open_unnamed_fallback(const char *folder, int *fd)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/.tokmap-XXXXXX", folder);
    if (length < 0 || (size_t)length >= sizeof path)
        return ENAMETOOLONG;
    *fd = mkostemp(path, O_CLOEXEC);
    if (*fd < 0)
        return errno;
    if (unlink(path)) {
        int system = errno;
        close(*fd);
        return system;
    }
    return 0;
}

/* Returns whether an open would wait for the writer of a pipe, in a process in which something may end waits. */
static bool open_would_wait(const char *path, enum os_open how)
{
    struct stat found;
    return how == OS_READ && wake_fd >= 0 && !stat(path, &found) && S_ISFIFO(found.st_mode);
}

int os_open(const char *path, enum os_open how, int *fd)
{
    /* Nothing could end a wait inside open(), so open() does not wait, and os_read() waits instead. */
    assert(path && (unsigned)how < sizeof open_flags / sizeof open_flags[0]);
    const bool later = open_would_wait(path, how);
    *fd = (int)TEMP_FAILURE_RETRY(
        open(path, open_flags[how] | (later ? O_NONBLOCK : 0), how == OS_WRITE_UNNAMED ? 0600 : 0666));
    if (*fd >= 0 && later)
        (void)fcntl(*fd, F_SETFL, fcntl(*fd, F_GETFL) & ~O_NONBLOCK);
    if (*fd >= 0)
        return 0;
    int system = errno;
    if (how == OS_WRITE_UNNAMED && (system == EOPNOTSUPP || system == EISDIR || system == EINVAL))
        return open_unnamed_fallback(path, fd);
    return system;
}

void os_close(int fd)
{
    if (fd < 0)
        return;
    struct os_fetched *file = os_fetched_of(fd);
    if (file)
        (void)os_fetched_set(fd, NULL);
    close(fd);
    os_fetched_release(file);
}

void os_files_expect(uint64_t count)
{
    struct rlimit limit;
    const int fd = open("/", O_PATH | O_CLOEXEC);
    if (fd >= 0 && !getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur > 0) {
        /* A copy of a descriptor with a high number makes the table grow; closing it does not make it shrink. */
        const uint64_t most = limit.rlim_cur < INT_MAX ? limit.rlim_cur - 1 : INT_MAX - 1;
        const uint64_t wanted = count < most ? (uint64_t)fd + count : most;
        os_close(fcntl(fd, F_DUPFD_CLOEXEC, (int)(wanted < most ? wanted : most)));
    }
    os_close(fd);
}

uint64_t os_files_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) ? 1024 : limit.rlim_cur;
}

static void stat_convert(const struct stat *from, struct os_stat *out)
{
    out->bytes = from->st_size > 0 ? (uint64_t)from->st_size : 0;
    out->device = (uint64_t)from->st_dev;
    out->inode = (uint64_t)from->st_ino;
    out->allocated = (uint64_t)from->st_blocks * 512;
    out->modified_ns = (uint64_t)from->st_mtim.tv_sec * 1000000000u + (uint64_t)from->st_mtim.tv_nsec;
    out->changed_ns = (uint64_t)from->st_ctim.tv_sec * 1000000000u + (uint64_t)from->st_ctim.tv_nsec;
    if (S_ISREG(from->st_mode))
        out->kind = OS_KIND_FILE;
    else if (S_ISDIR(from->st_mode))
        out->kind = OS_KIND_FOLDER;
    else if (S_ISLNK(from->st_mode))
        out->kind = OS_KIND_LINK;
    else if (S_ISFIFO(from->st_mode) || S_ISSOCK(from->st_mode))
        out->kind = OS_KIND_PIPE;
    else
        out->kind = OS_KIND_OTHER;
}

int os_fstat(int fd, struct os_stat *out)
{
    struct stat found;
    if (fstat(fd, &found))
        return errno;
    stat_convert(&found, out);
    return 0;
}

bool os_is_own(int fd)
{
    struct stat found;
    return !fstat(fd, &found) && found.st_uid == geteuid();
}

int os_file_bytes(int fd, uint64_t *bytes)
{
    const off_t end = lseek(fd, 0, SEEK_END);
    *bytes = end < 0 ? 0 : (uint64_t)end;
    return end < 0 ? errno : 0;
}

int os_stat(const char *path, struct os_stat *out)
{
    struct stat found;
    if (stat(path, &found))
        return errno;
    stat_convert(&found, out);
    return 0;
}

static int disk_bytes(const char *path, bool all, uint64_t *bytes)
{
    struct statvfs found;
    if (statvfs(path, &found))
        return errno;
    if (mul_overflows(all ? found.f_blocks : found.f_bavail, found.f_frsize, bytes))
        *bytes = UINT64_MAX;
    return 0;
}

int os_disk_free(const char *path, uint64_t *bytes)
{
    return disk_bytes(path, false, bytes);
}

int os_disk_size(const char *path, uint64_t *bytes)
{
    return disk_bytes(path, true, bytes);
}

int os_lstat(const char *path, struct os_stat *out)
{
    struct stat found;
    if (lstat(path, &found))
        return errno;
    stat_convert(&found, out);
    return 0;
}

static int pread_plain(int fd, void *into, size_t count, uint64_t offset, size_t *got)
{
    assert(into || !count);
    assert(offset <= INT64_MAX && count <= INT64_MAX - offset);
    *got = 0;
    while (*got < count) {
        size_t wanted = count - *got < ONE_CALL ? count - *got : ONE_CALL;
        ssize_t part = pread(fd, (char *)into + *got, wanted, (off_t)(offset + *got));
        if (part < 0 && errno == EINTR)
            continue;
        if (part < 0)
            return errno;
        if (part == 0)
            return 0;
        *got += (size_t)part;
    }
    return 0;
}

int os_fetched_pread(struct os_fetched *file, int fd, void *into, size_t count, uint64_t offset, size_t *got)
{
    int system = 0;
    if (!file)
        return pread_plain(fd, into, count, offset, got);
    /* In pieces, because a large read might find its first bytes given up for its last ones, without end. */
    for (*got = 0; *got < count && !system;) {
        const uint64_t at = offset + *got;
        const size_t piece = (size_t)min64(count - *got, FETCHED_PIECE - at % FETCHED_PIECE);
        uint64_t state;
        size_t part = 0;
        system = file->need(file, at, piece, true, &state);
        if (!system)
            system = pread_plain(fd, (char *)into + *got, piece, at, &part);
        if (system || !file->kept(file, at, piece, state))
            continue;
        *got += part;
        if (part < piece)
            break;
    }
    return system;
}

int os_pread(int fd, void *into, size_t count, uint64_t offset, size_t *got)
{
    return os_fetched_pread(os_fetched_of(fd), fd, into, count, offset, got);
}

static int pread_cached_plain(int fd, void *into, size_t count, uint64_t offset, size_t *got)
{
    *got = 0;
    struct iovec vector = {into, count};
    const ssize_t part = TEMP_FAILURE_RETRY(preadv2(fd, &vector, 1, (off_t)offset, RWF_NOWAIT));
    if (part < 0)
        return errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL ? ENOTSUP : errno;
    *got = (size_t)part;
    return 0;
}

int os_pread_cached(int fd, void *into, size_t count, uint64_t offset, size_t *got)
{
    struct os_fetched *file = os_fetched_of(fd);
    uint64_t state;
    *got = 0;
    int system = file ? file->need(file, offset, count, false, &state) : 0;
    if (!system)
        system = pread_cached_plain(fd, into, count, offset, got);
    if (!system && file && !file->kept(file, offset, count, state)) {
        *got = 0;
        return EAGAIN;
    }
    return system;
}

int os_read(int fd, void *into, size_t count, size_t *got)
{
    ssize_t part;
    *got = 0;
    do {
        const int system = wake_fd >= 0 ? os_wait_readable(fd, UINT64_MAX) : 0;
        if (system)
            return system;
        part = read(fd, into, count < ONE_CALL ? count : ONE_CALL);
    } while (part < 0 && errno == EINTR);
    if (part < 0)
        return errno;
    *got = (size_t)part;
    return 0;
}

int os_wait_readable(int fd, uint64_t ns)
{
    struct pollfd both[] = {{fd, POLLIN, 0}, {wake_fd, POLLIN, 0}};
    const uint64_t now = os_clock_ns(), until = ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
    for (uint64_t left = ns;; left = until - min64(until, os_clock_ns())) {
        const struct timespec wait = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
        const int ready = ppoll(both, 2, until == UINT64_MAX ? NULL : &wait, NULL);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready < 0)
            return errno;
        return both[1].revents ? EINTR : ready ? 0 : ETIMEDOUT;
    }
}

/* Waits until a write of PIPE_BUF bytes would not block. If the stream takes data and waits are to end as well, data
 * comes first: a reader that keeps reading gets all of the output. */
static int wait_writable(int fd)
{
    for (;;) {
        struct pollfd both[] = {{fd, POLLOUT, 0}, {wake_fd, POLLIN, 0}};
        const int ready = ppoll(both, 2, NULL, NULL);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready < 0)
            return errno;
        return both[0].revents ? 0 : EINTR;
    }
}

int os_write_stream(int fd, const void *from, size_t count)
{
    if (wake_fd < 0)
        return os_write(fd, from, count);
    for (size_t done = 0; done < count; done += min64(count - done, PIPE_BUF)) {
        int system = wait_writable(fd);
        if (!system)
            system = os_write(fd, (const char *)from + done, min64(count - done, PIPE_BUF));
        if (system)
            return system;
    }
    return 0;
}

/* Writes where the file is if offset is -1. */
static int write_all(int fd, const void *from, size_t count, off_t offset)
{
    assert(from || !count);
    for (size_t done = 0; done < count;) {
        const char *next = (const char *)from + done;
        const size_t wanted = count - done < ONE_CALL ? count - done : ONE_CALL;
        const ssize_t part = offset < 0 ? write(fd, next, wanted) : pwrite(fd, next, wanted, offset + (off_t)done);
        if (part < 0 && errno == EINTR)
            continue;
        if (part < 0)
            return errno;
        if (part == 0)
            return ENOSPC;
        done += (size_t)part;
    }
    return 0;
}

int os_write(int fd, const void *from, size_t count)
{
    return write_all(fd, from, count, -1);
}

int os_pwrite(int fd, const void *from, size_t count, uint64_t offset)
{
    assert(offset <= INT64_MAX && count <= INT64_MAX - offset);
    return write_all(fd, from, count, (off_t)offset);
}

/* For pairs of files between which the kernel cannot copy. */
static int copy_fallback(int from, uint64_t from_offset, int into, uint64_t into_offset, uint64_t count)
{
    enum { PART = 1 << 16 };
    char *buffer = malloc(PART);
    if (!buffer)
        return ENOMEM;
    int system = 0;
    while (count && !system) {
        size_t wanted = count < PART ? (size_t)count : PART, got;
        system = os_pread(from, buffer, wanted, from_offset, &got);
        if (!system && got < wanted)
            system = ENODATA;
        if (!system)
            system = os_pwrite(into, buffer, wanted, into_offset);
        from_offset += wanted;
        into_offset += wanted;
        count -= wanted;
    }
    free(buffer);
    return system;
}

int os_copy_range(int from, uint64_t from_offset, int into, uint64_t into_offset, uint64_t count)
{
    assert(from_offset <= INT64_MAX - count && into_offset <= INT64_MAX - count);
    while (count) {
        off64_t in = (off64_t)from_offset, out = (off64_t)into_offset;
        ssize_t part = copy_file_range(from, &in, into, &out, count < ONE_CALL ? (size_t)count : ONE_CALL, 0);
        if (part < 0 && errno == EINTR)
            continue;
        if (part < 0 && (errno == EXDEV || errno == ENOSYS || errno == EINVAL || errno == EOPNOTSUPP))
            return copy_fallback(from, from_offset, into, into_offset, count);
        if (part < 0)
            return errno;
        if (part == 0)
            return ENODATA;
        from_offset += (uint64_t)part;
        into_offset += (uint64_t)part;
        count -= (uint64_t)part;
    }
    return 0;
}

int os_truncate(int fd, uint64_t bytes)
{
    return TEMP_FAILURE_RETRY(ftruncate(fd, (off_t)bytes)) ? errno : 0;
}

void os_write_behind(int fd, uint64_t offset, uint64_t bytes)
{
    (void)sync_file_range(fd, (off64_t)offset, (off64_t)bytes, SYNC_FILE_RANGE_WRITE);
}

int os_sync(int fd)
{
    return TEMP_FAILURE_RETRY(fsync(fd)) ? errno : 0;
}

int os_sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof folder)
        return ENAMETOOLONG;
    memcpy(folder, path, length);
    folder[length] = '\0';
    if (!length)
        memcpy(folder, slash ? "/" : ".", 2);
    const int fd = (int)TEMP_FAILURE_RETRY(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return errno;
    int system = os_sync(fd);
    close(fd);
    return system == EINVAL ? 0 : system; /* file systems that cannot sync a folder store its names by themselves */
}

int os_rename(const char *from, const char *to)
{
    return rename(from, to) ? errno : 0;
}

int os_unlink(const char *path)
{
    return unlink(path) ? errno : 0;
}

int os_link(const char *path, const char *name)
{
    return link(path, name) ? errno : 0;
}

int os_remove_folder(const char *path)
{
    return rmdir(path) ? errno : 0;
}

int os_make_folder(const char *path)
{
    return mkdir(path, 0777) ? errno : 0;
}

int os_make_folders(const char *path)
{
    char *at = strdup(path);
    int system = at ? 0 : ENOMEM;
    for (char *slash = at ? strchr(at + 1, '/') : NULL; slash && !system; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        system = os_make_folder(at);
        system = system == EEXIST ? 0 : system;
        *slash = '/';
    }
    free(at);
    return system;
}

int os_real_path(const char *path, char **real)
{
    *real = realpath(path, NULL);
    return *real ? 0 : errno;
}

static int lock(int fd, int how)
{
    const bool failed = TEMP_FAILURE_RETRY(flock(fd, how | LOCK_NB)) != 0;
    if (failed && (errno == ENOSYS || errno == EOPNOTSUPP)) /* as file systems say it that never have locks */
        return ENOLCK;
    return failed ? errno : 0;
}

int os_lock(int fd)
{
    return lock(fd, LOCK_EX);
}

int os_lock_shared(int fd)
{
    return lock(fd, LOCK_SH);
}

void os_standard_files(void)
{
    /* The access mode is wrong on purpose, so that reads and writes fail. open() returns the lowest free descriptor. */
    static const int flags[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags[fd]) != fd)
            _exit(1);
}

/* ---- folders ---- */

static enum os_kind kind_of(unsigned char type)
{
    switch (type) {
    case DT_UNKNOWN:
        return OS_KIND_UNKNOWN;
    case DT_REG:
        return OS_KIND_FILE;
    case DT_DIR:
        return OS_KIND_FOLDER;
    case DT_LNK:
        return OS_KIND_LINK;
    case DT_FIFO:
    case DT_SOCK:
        return OS_KIND_PIPE;
    default:
        return OS_KIND_OTHER;
    }
}

int os_folder_kinds(const char *path, int (*entry)(void *user, const char *name, enum os_kind kind), void *user)
{
    assert(path && entry);
    DIR *folder = opendir(path);
    if (!folder)
        return errno;
    int result = 0;
    for (;;) {
        errno = 0;
        const struct dirent *found = readdir(folder);
        if (!found) {
            result = errno;
            break;
        }
        if (!strcmp(found->d_name, ".") || !strcmp(found->d_name, ".."))
            continue;
        result = entry(user, found->d_name, kind_of(found->d_type));
        if (result)
            break;
    }
    closedir(folder);
    return result;
}

struct name_entry {
    int (*entry)(void *user, const char *name);
    void *user;
};

static int entry_name(void *user, const char *name, enum os_kind kind)
{
    const struct name_entry *entry = user;
    return entry->entry(entry->user, name);
}

int os_folder_list(const char *path, int (*entry)(void *user, const char *name), void *user)
{
    struct name_entry names = {entry, user};
    assert(entry);
    return os_folder_kinds(path, entry_name, &names);
}

/* ---- page cache ---- */

void os_fetched_read_ahead(struct os_fetched *file, int fd, uint64_t offset, uint64_t bytes)
{
    uint64_t state;
    if (file && file->need(file, offset, bytes, false, &state))
        file->ask(file, offset, bytes);
    else
        (void)readahead(fd, (off64_t)offset, (size_t)bytes);
}

void os_read_ahead(int fd, uint64_t offset, uint64_t bytes)
{
    os_fetched_read_ahead(os_fetched_of(fd), fd, offset, bytes);
}

void os_advise_random(int fd)
{
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
}

void os_advise_drop(int fd, uint64_t offset, uint64_t bytes)
{
    (void)posix_fadvise(fd, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
}

/* ---- memory ---- */

size_t os_page_bytes(void)
{
    long bytes = sysconf(_SC_PAGESIZE);
    return bytes > 0 ? (size_t)bytes : 4096;
}

int os_map_file(int fd, uint64_t bytes, const void **address)
{
    *address = NULL;
    assert(bytes > 0);
    if (bytes > SIZE_MAX - 2 * HUGE_PAGE)
        return EOVERFLOW;
    if (bytes < HUGE_PAGE) {
        void *plain = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, 0);
        if (plain == MAP_FAILED)
            return errno;
        *address = plain;
        return 0;
    }
    /* Reserve address space for one huge page more, map the file at the boundary inside, and release the rest. */
    size_t page = os_page_bytes();
    size_t length = ((size_t)bytes + page - 1) & ~(page - 1);
    size_t reserved = length + HUGE_PAGE;
    char *base = mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return errno;
    char *start = (char *)(((uintptr_t)base + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    if (mmap(start, (size_t)bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        int system = errno;
        munmap(base, reserved);
        return system;
    }
    if (start > base)
        munmap(base, (size_t)(start - base));
    char *end = start + length;
    if (base + reserved > end)
        munmap(end, (size_t)(base + reserved - end));
    *address = start;
    return 0;
}

void os_unmap(const void *address, uint64_t bytes)
{
    if (address)
        munmap((void *)(uintptr_t)address, (size_t)bytes);
}

void os_map_ask(const void *address, uint64_t bytes)
{
    const uintptr_t page = os_page_bytes(), first = (uintptr_t)address & ~(page - 1);
    (void)madvise((void *)first, (uintptr_t)address + bytes - first, MADV_WILLNEED);
}

int os_map_populate(const void *address, uint64_t bytes)
{
    assert(address && bytes <= UINTPTR_MAX - (uintptr_t)address);
    uintptr_t page = os_page_bytes();
    uintptr_t first = (uintptr_t)address & ~(page - 1);
    uintptr_t end = ((uintptr_t)address + bytes + page - 1) & ~(page - 1);
    int failed, tries = 0, interrupts = 0;
    for (;;) {
        failed = madvise((void *)first, end - first, MADV_POPULATE_READ);
        if (failed && errno == EAGAIN && ++tries < OS_POPULATE_TRIES)
            os_sleep_ns(OS_POPULATE_PAUSE_NS);
        else if (!failed || errno != EINTR || ++interrupts == OS_POPULATE_INTERRUPTS)
            break;
    }
    if (failed && errno == EINTR)
        return EAGAIN;
    if (failed && errno == EINVAL)
        return ENOTSUP;
    if (failed && errno == EHWPOISON)
        return EIO;
    return failed ? errno : 0;
}

bool os_map_resident(const void *address, uint64_t bytes)
{
    assert(address && bytes <= UINTPTR_MAX - (uintptr_t)address);
    unsigned char pages[OS_RESIDENT_PAGES];
    uintptr_t page = os_page_bytes();
    uintptr_t first = (uintptr_t)address & ~(page - 1);
    uintptr_t end = ((uintptr_t)address + bytes + page - 1) & ~(page - 1);
    size_t count = (end - first) / page;
    if (count > sizeof pages || mincore((void *)first, end - first, pages))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!(pages[i] & 1))
            return false;
    return true;
}

int os_file_cached(int fd, uint64_t offset, uint64_t bytes, uint64_t *pages)
{
    struct {
        uint64_t offset, bytes;
    } range = {offset, bytes};
    struct {
        uint64_t cached, dirty, written_back, evicted, evicted_lately;
    } found = {0};
    const long failed = syscall(SYS_cachestat, fd, &range, &found, 0);
    *pages = found.cached;
    return !failed ? 0 : errno == ENOSYS || errno == EOPNOTSUPP ? ENOTSUP : errno;
}

int os_memory_new(uint64_t bytes, bool huge, void **address)
{
    *address = NULL;
    if (!bytes || bytes > SIZE_MAX / 2)
        return ENOMEM;
    /* For huge pages, what is before their first boundary and after the end is released again. */
    const size_t page = os_page_bytes(), length = ((size_t)bytes + page - 1) & ~(page - 1);
    const size_t reserved = length + (huge ? HUGE_PAGE : 0);
    char *base = mmap(NULL, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return errno;
    char *found = huge ? (char *)(((uintptr_t)base + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1)) : base;
    if (found > base)
        munmap(base, (size_t)(found - base));
    if (base + reserved > found + length)
        munmap(found + length, (size_t)(base + reserved - (found + length)));
    if (huge)
        (void)madvise(found, length, MADV_HUGEPAGE);
    *address = found;
    return 0;
}

void os_memory_free(void *address, uint64_t bytes)
{
    if (address)
        munmap(address, (size_t)bytes);
}

void *os_memory_large(size_t bytes)
{
    const size_t rest = bytes % HUGE_PAGE;
    const bool large = bytes >= OS_LARGE;
    const size_t length = large && bytes < 2 * HUGE_PAGE && rest >= OS_LARGE ? bytes - rest + HUGE_PAGE : bytes;
    void *memory = NULL;
    if (bytes > SIZE_MAX / 4) /* more than any address space; a sanitizer would end the program */
        return NULL;
    if (posix_memalign(&memory, large ? HUGE_PAGE : CACHE_LINE, length))
        return NULL;
    if (large) /* the last page is shared with what malloc() keeps behind it */
        (void)madvise(memory, length & ~(os_page_bytes() - 1), MADV_HUGEPAGE);
    return memory;
}

void *os_memory_large_zeros(size_t count, size_t bytes)
{
    if (bytes && count > SIZE_MAX / bytes)
        return NULL;
    void *memory = os_memory_large(count * bytes);
    if (memory)
        memset(memory, 0, count * bytes);
    return memory;
}

void os_memory_small_pages(void *address, uint64_t bytes)
{
    (void)madvise(address, (size_t)bytes, MADV_NOHUGEPAGE);
}

bool os_memory_zero_on_fork(void *address, uint64_t bytes)
{
    return !madvise(address, (size_t)bytes, MADV_WIPEONFORK);
}

void os_memory_not_in_child(void *address, uint64_t bytes)
{
    (void)madvise(address, (size_t)bytes, MADV_DONTFORK);
}

/* Returns the number at the start of a small file of the kernel; UINT64_MAX if there is no number ("max") or no
 * file. */
static uint64_t number_in(const char *path)
{
    char text[64] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return UINT64_MAX;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0 || text[0] < '0' || text[0] > '9')
        return UINT64_MAX;
    return strtoull(text, NULL, 10);
}

/* Returns the smallest limit of this process's control group (version 2) and of those that contain it. */
static uint64_t control_group_limit(void)
{
    uint64_t limit = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes"); /* version 1, inside a container */
    char line[PATH_MAX] = "", path[PATH_MAX + 64];
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return limit;
    char *group = NULL;
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, "0::", 3)) {
            line[strcspn(line, "\n")] = '\0';
            group = line + 3;
            break;
        }
    fclose(file);
    while (group) {
        (void)snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", strcmp(group, "/") ? group : "");
        uint64_t own = number_in(path);
        limit = own < limit ? own : limit;
        char *slash = strrchr(group, '/');
        if (!slash || !*group)
            break;
        *slash = '\0';
    }
    return limit;
}

uint64_t os_memory_limit(void)
{
    /* Looked up again after 10 ms: a run of a thousand sources asks for each of them. Accessed atomically. */
    static uint64_t known, known_ns;
    const uint64_t now = os_clock_ns();
    if (now - __atomic_load_n(&known_ns, __ATOMIC_ACQUIRE) < 10000000)
        return __atomic_load_n(&known, __ATOMIC_RELAXED);
    struct sysinfo info;
    uint64_t machine = sysinfo(&info) ? UINT64_MAX : (uint64_t)info.totalram * info.mem_unit;
    uint64_t group = control_group_limit();
    const uint64_t limit = group < machine ? group : machine;
    __atomic_store_n(&known, limit, __ATOMIC_RELAXED);
    __atomic_store_n(&known_ns, now, __ATOMIC_RELEASE);
    return limit;
}

bool os_file_is_local(int fd)
{
    /* Magic numbers of statfs(2) for file systems whose data is on another machine or passes through another process.
     */
    static const uint64_t distant[] = {
        0x6969,     /* NFS */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB2 */
        0x65735546, /* FUSE */
        0x01021997, /* 9P */
        0x00c36400, /* CEPH */
        0x0bd00bd0, /* Lustre */
        0x47504653, /* GPFS */
        0x5346414f, /* AFS */
        0x73757245, /* Coda */
        0x19830326, /* BeeGFS */
        0x18031977, /* Weka */
        0xaad7aaea, /* Panasas */
        0x20030528, /* OrangeFS */
    };
    struct statfs found;
    if (fstatfs(fd, &found))
        return false;
    for (size_t i = 0; i < sizeof distant / sizeof distant[0]; i++)
        if (((uint64_t)found.f_type & 0xffffffff) == distant[i])
            return false;
    return true;
}

bool os_file_is_memory(int fd)
{
    struct statfs found;
    if (fstatfs(fd, &found))
        return false;
    uint64_t type = (uint64_t)found.f_type & 0xffffffff;
    return type == 0x01021994 || type == 0x858458f6 || type == 0x958458f6; /* tmpfs, ramfs, hugetlbfs */
}
