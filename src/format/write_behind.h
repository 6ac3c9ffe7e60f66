/* SPDX-License-Identifier: MIT */
/*
 * write_behind.h - stores a large file while it is still being written, and keeps it from filling the page cache.
 *
 * The idea. The kernel collects what a program writes in the page cache and stores it much later. For a file of many
 * gigabytes that has two costs. The fsync at the end waits until everything is stored. And each page needs memory that
 * the kernel has to find first, by dropping the files that other programs read, or, in a virtual machine, by asking the
 * host for it, which can take longer than encoding the tokens. So the kernel is asked to store each few MiB as soon as
 * they are written, and pages that were written some time ago are dropped. The next pages then get the memory of the
 * dropped ones, which is at hand.
 *
 * What the kernel has handed to the disk may still be in a volatile cache: of the disk, or of the host of a virtual
 * machine, which can collect hundreds of MiB until the fsync at the end empties it. So a thread also calls fsync after
 * each WRITE_BEHIND_FLUSH bytes, and the last one has little left to wait for. Files below that size have no thread.
 *
 * Nothing here makes the writer wait. A page that is not stored yet is not dropped, so a slow disk fills the page cache
 * as before. The last WRITE_BEHIND_KEPT bytes stay, and so does a small file as a whole.
 *
 * Example: after 24 MiB, bytes 20 to 24 MiB are on their way to storage, and bytes 4 to 8 MiB are dropped.
 *
 * Errors of storing are not lost: they are reported by fsync, once for each file descriptor. What the thread's fsync
 * reports is kept, and write_behind_store() returns it. (sync_file_range could wait for the pages, but would take the
 * error away from fsync.)
 *
 * Tried and not kept, on two virtual machines with 350 to 550 MB: waiting until pages are stored before they are
 * dropped (the same time); fallocate of 16 to 256 MiB ahead (1 to 2% faster, but file systems do not compress what was
 * reserved); writes of 128 KiB, 512 KiB, or 1 MiB in place of 256 KiB (the same); fsync after 8, 16, 24, or 64 MiB
 * (1.53 to 1.67 s, in no order). O_DIRECT with a copy to huge pages would save about 6% of the processor time, but one
 * write at a time is slower than fast disks, and file systems that refuse such writes would need this way as well.
 */
#ifndef TOKMAP_FORMAT_WRITE_BEHIND_H
#define TOKMAP_FORMAT_WRITE_BEHIND_H

#include "platform/os.h"

#define WRITE_BEHIND_FLUSH ((uint64_t)32 << 20)
#define WRITE_BEHIND_STEP ((uint64_t)4 << 20)
#define WRITE_BEHIND_KEPT ((uint64_t)16 << 20)
#define WRITE_BEHIND_PAGE ((uint64_t)1 << 16) /* a multiple of the page of every processor */

/* Begins with zeros. One thread at a time may use it, and write_behind_end() must come before the file is closed. */
struct write_behind {
    uint64_t asked;                   /* the kernel has been asked to store the bytes up to here, */
    uint64_t dropped;                 /* and to drop those up to here; both at most the bytes written */
    uint64_t flushed;                 /* the bytes that had been written when the last thread was started */
    struct write_behind_flush *flush; /* that thread, or NULL */
    int failed;                       /* errno of the first fsync that failed, or 0 */
};

/* Starts a thread that calls fsync, unless the last one is not done yet. */
void write_behind_flush(struct write_behind *behind, int fd, uint64_t written);
/* Calls fsync. Returns 0 if all that has been written is stored, or errno; after an error it does not return 0 again.
 */
int write_behind_store(struct write_behind *behind, int fd);
/* Ends the thread, if there is one. May be called several times. */
void write_behind_end(struct write_behind *behind);

/* Drops all but the last bytes of a file of `written` bytes from the page cache, as far as they are stored. */
static inline void write_behind_drop(struct write_behind *behind, int fd, uint64_t written)
{
    const uint64_t end = written > WRITE_BEHIND_KEPT ? (written - WRITE_BEHIND_KEPT) & ~(WRITE_BEHIND_PAGE - 1) : 0;
    if (end > behind->dropped) {
        os_advise_drop(fd, behind->dropped, end - behind->dropped);
        behind->dropped = end;
    }
}

/* Call this after each write; written: the bytes that the file has now. */
static inline void write_behind(struct write_behind *behind, int fd, uint64_t written)
{
    if (written - behind->asked < WRITE_BEHIND_STEP)
        return;
    os_write_behind(fd, behind->asked, written - behind->asked);
    behind->asked = written;
    write_behind_drop(behind, fd, written);
    if (written - behind->flushed >= WRITE_BEHIND_FLUSH)
        write_behind_flush(behind, fd, written);
}

/* Call this after the last write, if other work comes before write_behind_sync(). */
static inline void write_behind_rest(struct write_behind *behind, int fd, uint64_t written)
{
    if (written > behind->asked)
        os_write_behind(fd, behind->asked, written - behind->asked);
    behind->asked = written;
}

/* Calls write_behind_store(), and drops what was not stored when its turn came. Returns 0 or errno. */
static inline int write_behind_sync(struct write_behind *behind, int fd, uint64_t written)
{
    const int system = write_behind_store(behind, fd);
    behind->dropped = 0;
    if (!system)
        write_behind_drop(behind, fd, written);
    return system;
}

#endif
