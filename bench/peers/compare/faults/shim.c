/* SPDX-License-Identifier: MIT */
/*
 * shim.c - makes the reads of a program fail on request. It is compiled on the user's machine and preloaded
 * (LD_PRELOAD) where there is no FUSE. It reaches calls of read(), pread(), and their variants by the program and its
 * libraries, but not those that libc makes itself (fread), and no mapping.
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { NONE, EIO_READS, SHORT_READS, STALL };

static struct {
    int kind;
    long long from, to;
    double seconds;
    char name[NAME_MAX + 1];
} rule;
static long long *hits; /* shared with forked children */

/* Begins a fault in reads of bytes from .. to of files called `name`, as fuse.py describes it; kind 0 ends it. */
void tokmap_faults_rule(int kind, const char *name, long long from, long long to, double seconds)
{
    if (!hits) {
        void *memory = mmap(NULL, sizeof *hits, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        hits = memory == MAP_FAILED ? NULL : memory;
    }
    rule.kind = hits ? kind : NONE;
    rule.from = from;
    rule.to = to;
    rule.seconds = seconds;
    (void)snprintf(rule.name, sizeof rule.name, "%s", name);
    if (hits)
        *hits = 0;
}

long long tokmap_faults_hits(void)
{
    return hits ? *hits : 0;
}

/* Is this a file of the rule's name, and does the read meet its bytes? offset: -1 for the file's own position. */
static int meets(int file, off64_t offset, size_t bytes)
{
    char link[64], path[PATH_MAX + 1];
    const int saved = errno;
    if (rule.kind == NONE)
        return 0;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(link, path, PATH_MAX);
    path[length > 0 ? length : 0] = 0;
    const char *slash = strrchr(path, '/');
    const long long at = offset >= 0 ? offset : (long long)lseek(file, 0, SEEK_CUR);
    errno = saved;
    return slash && !strcmp(slash + 1, rule.name) &&
           (rule.kind == SHORT_READS ? bytes > 1 : at < rule.to && at + (long long)bytes > rule.from);
}

/* Returns the number of bytes to read, or -1 for an error. */
static ssize_t faulty(int file, off64_t offset, size_t bytes)
{
    if (!meets(file, offset, bytes))
        return (ssize_t)bytes;
    const long long hit = __atomic_add_fetch(hits, 1, __ATOMIC_SEQ_CST);
    if (rule.kind == EIO_READS) {
        errno = EIO;
        return -1;
    }
    if (rule.kind == SHORT_READS)
        return (ssize_t)(bytes / 2);
    if (hit == 1) {
        struct timespec left = {(time_t)rule.seconds, (long)((rule.seconds - (double)(time_t)rule.seconds) * 1e9)};
        while (nanosleep(&left, &left) && errno == EINTR)
            ;
    }
    return (ssize_t)bytes;
}

/* Keeps the first `bytes` bytes of the parts; part: room for `count` of them. Returns their number. */
static int shorter(struct iovec *part, const struct iovec *parts, int count, size_t bytes)
{
    int used = 0;
    while (used < count && bytes) {
        part[used] = parts[used];
        if (part[used].iov_len > bytes)
            part[used].iov_len = bytes;
        bytes -= part[used++].iov_len;
    }
    return used;
}

static size_t sum(const struct iovec *parts, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += parts[i].iov_len;
    return bytes;
}

#define NEXT(type, name)                                                                                               \
    static type *next;                                                                                                 \
    if (!next)                                                                                                         \
    next = (type *)(size_t)dlsym(RTLD_NEXT, name)

typedef ssize_t read_call(int, void *, size_t);
typedef ssize_t pread_call(int, void *, size_t, off64_t);
typedef ssize_t readv_call(int, const struct iovec *, int);
typedef ssize_t preadv_call(int, const struct iovec *, int, off64_t);
typedef ssize_t preadv2_call(int, const struct iovec *, int, off64_t, int);

ssize_t read(int file, void *memory, size_t bytes)
{
    NEXT(read_call, "read");
    const ssize_t wanted = faulty(file, -1, bytes);
    return wanted < 0 ? -1 : next(file, memory, (size_t)wanted);
}

ssize_t pread64(int file, void *memory, size_t bytes, off64_t offset)
{
    NEXT(pread_call, "pread64");
    const ssize_t wanted = faulty(file, offset, bytes);
    return wanted < 0 ? -1 : next(file, memory, (size_t)wanted, offset);
}

ssize_t pread(int file, void *memory, size_t bytes, off_t offset)
{
    return pread64(file, memory, bytes, offset);
}

ssize_t readv(int file, const struct iovec *parts, int count)
{
    NEXT(readv_call, "readv");
    struct iovec part[IOV_MAX];
    const size_t bytes = sum(parts, count);
    const ssize_t wanted = faulty(file, -1, bytes);
    if (wanted < 0 || (size_t)wanted == bytes || count > IOV_MAX)
        return wanted < 0 ? -1 : next(file, parts, count);
    return next(file, part, shorter(part, parts, count, (size_t)wanted));
}

ssize_t preadv64(int file, const struct iovec *parts, int count, off64_t offset)
{
    NEXT(preadv_call, "preadv64");
    struct iovec part[IOV_MAX];
    const size_t bytes = sum(parts, count);
    const ssize_t wanted = faulty(file, offset, bytes);
    if (wanted < 0 || (size_t)wanted == bytes || count > IOV_MAX)
        return wanted < 0 ? -1 : next(file, parts, count, offset);
    return next(file, part, shorter(part, parts, count, (size_t)wanted), offset);
}

ssize_t preadv(int file, const struct iovec *parts, int count, off_t offset)
{
    return preadv64(file, parts, count, offset);
}

/* Reads. A read that may only take what is in memory finds nothing where a fault is: it would not wait for storage. */
ssize_t preadv64v2(int file, const struct iovec *parts, int count, off64_t offset, int flags)
{
    NEXT(preadv2_call, "preadv64v2");
    if (!meets(file, offset, sum(parts, count)))
        return next(file, parts, count, offset, flags);
    if (flags & RWF_NOWAIT) {
        errno = EAGAIN;
        return -1;
    }
    return preadv64(file, parts, count, offset);
}

ssize_t preadv2(int file, const struct iovec *parts, int count, off_t offset, int flags)
{
    return preadv64v2(file, parts, count, offset, flags);
}
