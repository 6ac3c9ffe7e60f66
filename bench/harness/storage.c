/* SPDX-License-Identifier: MIT */
/* storage.c - see storage.h. */
#include "storage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench_data.h"
#include "common/error.h"
#include "format/values_file.h"
#include "platform/os.h"

#define PROBES 64                 /* random pages of a file that are looked up in the page cache */
#define PROBES_LEFT (PROBES / 16) /* of these may stay: other programs read, too */
#define DROPS_MOST 20
#define DROP_PAUSE_NS 50000000

/* Counts how many of PROBES random pages of a file are in the page cache. Returns 0 or an errno; ENOTSUP if the kernel
 * cannot tell. */
static int probes_count(int fd, uint64_t bytes, uint32_t *cached)
{
    uint64_t state = 7;
    *cached = 0;
    for (int i = 0; i < PROBES; i++) {
        char byte;
        size_t got = 0;
        int system = os_pread_cached(fd, &byte, 1, random_below(&state, bytes), &got);
        if (system && system != EAGAIN)
            return system;
        *cached += !system && got;
    }
    return 0;
}

/* Returns whether a name is that of an object, whose copy in a cache folder is the cache's alone. */
static bool is_object(const char *path)
{
    return strstr(path, "://") != NULL;
}

static enum tokmap_status file_drop(const char *path, struct tokmap_error *error)
{
    int fd;
    uint32_t cached = PROBES;
    struct os_stat stat;
    int system = os_open(path, OS_READ, &fd);
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "The tokens cannot be opened.");
    if (os_file_is_memory(fd)) {
        os_close(fd);
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                         "This file system (tmpfs) keeps its files in memory, so they cannot be read cold; give a "
                         "--dir or a dataset on a disk.");
    }
    system = os_fstat(fd, &stat);
    for (int attempt = 0; !system && cached > PROBES_LEFT && attempt < DROPS_MOST; attempt++) {
        if (attempt)
            os_sleep_ns(DROP_PAUSE_NS); /* the storage may still be reading what somebody asked for ahead */
        system = os_sync(fd);           /* the kernel drops only pages that are on storage */
        os_advise_drop(fd, 0, stat.bytes);
        cached = 0;
        if (!system && stat.bytes)
            system = probes_count(fd, stat.bytes, &cached);
    }
    os_close(fd);
    if (system == ENOTSUP)
        return TOKMAP_OK; /* this kernel cannot report what is cached; it has been asked to drop the pages */
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET,
                                "The tokens cannot be dropped from the page cache.");
    if (cached > PROBES_LEFT)
        return error_set(error, TOKMAP_ERROR_BUSY, path, TOKMAP_NO_OFFSET,
                         "%" PRIu32
                         " of %d sampled pages stayed in the page cache after the file was dropped, because another "
                         "process has the file mapped; end that process, or measure on another dataset.",
                         cached, PROBES);
    return TOKMAP_OK;
}

/* drop: first drops what is in the page cache. */
static void file_read(struct bench *bench, const char *path, bool drop)
{
    static char buffer[1 << 20];
    int fd;
    uint64_t at = 0;
    size_t got = 0;
    bench_check_system(bench, os_open(path, OS_READ, &fd), path, "The file cannot be opened.");
    if (drop && !os_file_is_memory(fd)) {
        (void)os_sync(fd);
        os_advise_drop(fd, 0, 0); /* length 0: the whole file */
    }
    int system;
    do {
        system = os_pread(fd, buffer, sizeof buffer, at, &got);
        at += got;
    } while (!system && got == sizeof buffer && !bench_stopped());
    os_close(fd);
    bench_check_system(bench, system, path, "The file cannot be read.");
}

void page_cache_read(struct bench *bench, const char *path)
{
    file_read(bench, path, false);
}

/* Calls `visit` for the file of tokens, or of the values of this name, of each shard that is on a disk, until it fails.
 */
static enum tokmap_status files_visit(const struct tokmap_dataset *dataset, const char *values,
                                      enum tokmap_status (*visit)(const char *path, void *user,
                                                                  struct tokmap_error *error),
                                      void *user, struct tokmap_error *error)
{
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    enum tokmap_status status = tokmap_dataset_info(dataset, &info);
    if (status)
        return error_set(error, status, NULL, TOKMAP_NO_OFFSET, "The dataset cannot be described.");
    for (uint64_t i = 0; !status && i < info.shards; i++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        status = tokmap_dataset_shard(dataset, i, &shard, error);
        if (status || is_object(shard.tokens_path))
            continue;
        char *path = values ? values_file_path(shard.index_path, values, VALUES_FINAL) : strdup(shard.tokens_path);
        status = path ? visit(path, user, error) : error_set_memory(error, "a path", 0);
        free(path);
    }
    return status;
}

static enum tokmap_status file_try_drop(const char *path, void *user, struct tokmap_error *error)
{
    (void)user;
    return file_drop(path, error);
}

enum tokmap_status page_cache_try_drop(const struct tokmap_dataset *dataset, struct tokmap_error *error)
{
    return files_visit(dataset, NULL, file_try_drop, NULL, error);
}

void page_cache_drop(struct bench *bench, const struct tokmap_dataset *dataset)
{
    bench_check(bench, page_cache_try_drop(dataset, &bench->error));
    if (bench->options.values)
        bench_check(bench, files_visit(dataset, bench->options.values, file_try_drop, NULL, &bench->error));
}

static enum tokmap_status file_size_add(const char *path, void *user, struct tokmap_error *error)
{
    struct os_stat stat;
    uint64_t *bytes = user;
    const int system = os_stat(path, &stat);
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "The file cannot be examined.");
    *bytes += stat.bytes;
    return TOKMAP_OK;
}

static enum tokmap_status file_warm(const char *path, void *user, struct tokmap_error *error)
{
    (void)error;
    file_read(user, path, true);
    return TOKMAP_OK;
}

/* Brings the tokens, or the values of this name, into the page cache. */
static void files_warm(struct bench *bench, const struct tokmap_dataset *dataset, const char *values)
{
    uint64_t bytes = 0;
    bench_check(bench, files_visit(dataset, values, file_size_add, &bytes, &bench->error));
    if (bytes > os_memory_limit() / 2)
        bench_say(bench, "the %s larger than half of the memory, so %s not read into the page cache first",
                  values ? "values are" : "dataset is", values ? "they are" : "it is");
    else
        bench_check(bench, files_visit(dataset, values, file_warm, bench, &bench->error));
}

void page_cache_warm(struct bench *bench, const struct tokmap_dataset *dataset)
{
    files_warm(bench, dataset, NULL);
    if (bench->options.values)
        files_warm(bench, dataset, bench->options.values);
}
