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

/* Pages that one thread of the limit reads. */
struct share {
    int fd;
    uint64_t from, to; /* bytes of the file */
    int system;        /* result: 0 or an errno */
};

static void range_read(void *user)
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

static double read_repeat(struct bench *bench, const struct opened *data, uint32_t threads)
{
    struct share shares[THREADS_MOST];
    struct os_thread *running[THREADS_MOST] = {NULL};
    const char *path = data->first.tokens_path;
    const uint64_t bytes = data->first.tokens * data->info.width;
    int fd, failed = 0;
    bench_check_system(bench, os_open(path, OS_READ, &fd), path, "The tokens cannot be opened.");
    const uint64_t started = os_clock_ns();
    for (uint32_t i = 0; i < threads; i++) {
        shares[i] = (struct share){fd, mul_div(bytes, i, threads), mul_div(bytes, i + 1, threads), 0};
        if (i + 1 == threads || os_thread_start(&running[i], "read", range_read, &shares[i]))
            range_read(&shares[i]); /* the last share, and any whose thread cannot be started, on this thread */
    }
    for (uint32_t i = 0; i < threads; i++) {
        os_thread_join(running[i]);
        failed = shares[i].system ? shares[i].system : failed;
    }
    const double rate = (double)bytes / (double)(os_clock_ns() - started);
    os_close(fd);
    bench_check_system(bench, failed, path, "The tokens cannot be read.");
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
