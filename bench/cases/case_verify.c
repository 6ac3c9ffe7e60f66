/* SPDX-License-Identifier: MIT */
/*
 * case_verify.c - the rate of verification, which reads and hashes every byte. The limit is the rate of reading every
 * byte from the page cache with the same number of threads.
 */
#include "cases.h"

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/dataset_make.h"
#include "harness/page_cache.h"
#include "platform/os.h"

#define THREADS_MOST 64

/* What one thread of the limit reads. */
struct share {
    int fd;
    uint64_t from, to; /* bytes of the file */
    int system;        /* result: 0 or an errno */
};

static void share_read(void *user)
{
    struct share *share = user;
    void *buffer = NULL;
    const size_t bytes = 1 << 20;
    size_t got = 1;
    share->system = os_memory_new(bytes, false, &buffer);
    while (!share->system && share->from < share->to && got) {
        share->system = os_pread(share->fd, buffer, (size_t)min64(bytes, share->to - share->from), share->from, &got);
        share->from += got;
    }
    os_memory_free(buffer, bytes);
}

static int read_repeat(struct bench *bench, const char *path, uint64_t bytes, uint32_t threads, double *rate)
{
    struct share shares[THREADS_MOST];
    struct os_thread *running[THREADS_MOST] = {NULL};
    int fd, failed = 0;
    const int system = os_open(path, OS_READ, &fd);
    if (system)
        return bench_failed_system(bench, system, path, "The tokens cannot be opened.");
    const uint64_t started = os_clock_ns();
    for (uint32_t i = 0; i < threads; i++) {
        shares[i] = (struct share){fd, mul_div(bytes, i, threads), mul_div(bytes, i + 1, threads), 0};
        if (i + 1 == threads || os_thread_start(&running[i], "read", share_read, &shares[i]))
            share_read(&shares[i]); /* the last share, and any whose thread cannot be started, on this thread */
    }
    for (uint32_t i = 0; i < threads; i++) {
        os_thread_join(running[i]);
        failed = shares[i].system ? shares[i].system : failed;
    }
    *rate = (double)bytes / (double)(os_clock_ns() - started);
    os_close(fd);
    return failed ? bench_failed_system(bench, failed, path, "The tokens cannot be read.") : CLI_DONE;
}

static int verify_repeat(struct bench *bench, const struct tokmap_dataset *dataset, uint32_t threads, double *rate)
{
    struct tokmap_verify_options options = TOKMAP_VERIFY_OPTIONS_INIT;
    struct tokmap_verify_result result = {.size = sizeof result};
    struct tokmap_error error = {0};
    options.threads = threads;
    const uint64_t started = os_clock_ns();
    if (tokmap_dataset_verify(dataset, &options, &result, &error))
        return bench_failed(bench, &error);
    *rate = (double)result.bytes / (double)(os_clock_ns() - started);
    return CLI_DONE;
}

static int run(struct bench *bench)
{
    static struct series found, limit;
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_dataset_info info = {.size = sizeof info};
    struct tokmap_shard_info shard = {.size = sizeof shard};
    const uint32_t threads = (uint32_t)max64(1, min64(bench->options.threads, THREADS_MOST));
    int result = dataset_open(bench, TOKMAP_READ_AUTO, &dataset); /* as the command tokmap opens it */
    if (!result)
        result = page_cache_warm(bench, dataset);
    if (!result)
        result = dataset_get_info(bench, dataset, &info, &shard);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 7), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats, result)) {
        double rate = 0, plain = 0;
        result = verify_repeat(bench, dataset, threads, &rate);
        if (!result)
            result = read_repeat(bench, shard.tokens_path, shard.tokens * info.width, threads, &plain);
        if (repeats.counts) {
            series_add(&found, rate);
            series_add(&limit, plain);
        }
    }
    tokmap_dataset_close(dataset);
    if (result || bench_stopped())
        return CLI_FAILED;
    bench_result(bench, "gb_s", "GB/s", &found, &limit);
    return CLI_DONE;
}

const struct bench_case case_verify = {"verify",
                                       "reading and hashing every byte, beside the bandwidth of the page cache", run};
