/* SPDX-License-Identifier: MIT */
/* write_behind.c - the thread of write_behind.h that calls fsync while a file is still being written. */
#include "write_behind.h"

#include <stdlib.h>

struct write_behind_flush {
    struct os_thread *thread;
    int fd;
    int system;    /* result of fsync; valid when the thread has been joined */
    uint32_t done; /* 1: the thread is about to end */
};

static void flush_run(void *user)
{
    struct write_behind_flush *flush = user;
    flush->system = os_sync(flush->fd);
    __atomic_store_n(&flush->done, 1, __ATOMIC_RELEASE);
}

void write_behind_end(struct write_behind *behind)
{
    struct write_behind_flush *flush = behind->flush;
    if (!flush)
        return;
    os_thread_join(flush->thread);
    if (!behind->failed)
        behind->failed = flush->system;
    free(flush);
    behind->flush = NULL;
}

void write_behind_flush(struct write_behind *behind, int fd, uint64_t written)
{
    if (behind->flush && !__atomic_load_n(&behind->flush->done, __ATOMIC_ACQUIRE))
        return;
    write_behind_end(behind);
    struct write_behind_flush *flush = calloc(1, sizeof *flush);
    behind->flushed = written;
    if (!flush)
        return; /* then all of it is left to the fsync at the end */
    flush->fd = fd;
    if (os_thread_start(&flush->thread, "tokmap-sync", flush_run, flush))
        free(flush);
    else
        behind->flush = flush;
}

int write_behind_store(struct write_behind *behind, int fd)
{
    write_behind_end(behind);
    const int system = os_sync(fd);
    if (!behind->failed)
        behind->failed = system;
    return behind->failed;
}
