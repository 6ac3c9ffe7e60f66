/* SPDX-License-Identifier: MIT */
/*
 * case_verify.c - the rate of verification, which reads and hashes every byte. The limit is the rate of reading every
 * byte from the page cache with the same number of threads.
 */
#include "cases.h"

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/bench_data.h"
#include "harness/storage.h"
#include "platform/os.h"

#define THREADS_MOST 64

#define CHUNK ((size_t)1 << 20) /* bytes of a read */

/* A file that the threads of the limit read. */
struct reading {
    int fd;
    uint64_t bytes, next; /* next: of the file; accessed atomically */
    int system;           /* the errno of a failure, or 0; accessed atomically */
};

static void chunks_read(void *user, uint32_t thread)
{
    struct reading *reading = user;
    void *buffer = NULL;
    int system = os_memory_new(CHUNK, false, &buffer);
    for (uint64_t at; !system && (at = __atomic_fetch_add(&reading->next, CHUNK, __ATOMIC_RELAXED)) < reading->bytes;) {
        size_t got;
        system = os_pread(reading->fd, buffer, (size_t)min64(CHUNK, reading->bytes - at), at, &got);
    }
    os_memory_free(buffer, CHUNK);
    if (system)
        __atomic_store_n(&reading->system, system, __ATOMIC_RELAXED);
}

static double read_repeat(struct bench *bench, const struct opened *data, uint32_t threads)
{
    const char *path = data->first.tokens_path;
    struct reading reading = {.bytes = data->first.tokens * data->info.width};
    bench_check_system(bench, os_open(path, OS_READ, &reading.fd), path, "The tokens cannot be opened.");
    const uint64_t started = os_clock_ns();
    os_threads_share("read", threads, chunks_read, &reading);
    const double rate = (double)reading.bytes / (double)(os_clock_ns() - started);
    os_close(reading.fd);
    bench_check_system(bench, reading.system, path, "The tokens cannot be read.");
    return rate;
}

static double verify_repeat(struct bench *bench, const struct tokmap_dataset *dataset, uint32_t threads)
{
    struct tokmap_verify_options options = TOKMAP_VERIFY_OPTIONS_INIT;
    struct tokmap_verify_result result = TOKMAP_VERIFY_RESULT_INIT;
    options.threads = threads;
    const uint64_t started = os_clock_ns();
    bench_check(bench, tokmap_dataset_verify(dataset, &options, &result, &bench->error));
    return (double)result.bytes / (double)(os_clock_ns() - started);
}

static int verify_run(struct bench *bench)
{
    static struct series found, limit;
    const uint32_t threads = (uint32_t)max64(1, min64(bench->options.threads, THREADS_MOST));
    const struct opened data = dataset_open(bench, TOKMAP_READ_AUTO); /* as the command tokmap opens it */
    page_cache_warm(bench, data.dataset);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 7), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats)) {
        repeats_add(&repeats, &found, verify_repeat(bench, data.dataset, threads));
        repeats_add(&repeats, &limit, read_repeat(bench, &data, threads));
    }
    tokmap_dataset_close(data.dataset);
    bench_result(bench, "gb_s", "GB/s", &found, &limit);
    return CLI_DONE;
}

const struct bench_case case_verify = {"verify",
                                       "reading and hashing every byte, beside the bandwidth of the page cache",
                                       .run = verify_run, .reads_files = true};
