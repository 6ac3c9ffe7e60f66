/* case_verify.c - reading and hashing every byte, beside reading every byte from the page cache. */
#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/dataset_make.h"
#include "platform/os.h"

/* As many threads as verify has, each reading a share of the file. */
struct share {
    int fd;
    uint64_t from, to;
    int system;
};

static void read_share(void *user)
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

#define THREADS_MAX 64

static int read_turn(struct bench *bench, const char *path, uint64_t bytes, uint32_t threads, double *rate)
{
    struct share shares[THREADS_MAX];
    struct os_thread *running[THREADS_MAX] = {NULL};
    int fd, failed = 0;
    int system = os_open(path, OS_READ, &fd);
    if (system)
        return bench_failed_system(bench, system, path, "The tokens cannot be opened.");
    uint64_t started = os_clock_ns();
    for (uint32_t i = 0; i < threads; i++) {
        shares[i] = (struct share){fd, mul_div(bytes, i, threads), mul_div(bytes, i + 1, threads), 0};
        if (i + 1 == threads || os_thread_start(&running[i], "read", read_share, &shares[i]))
            read_share(&shares[i]);
    }
    for (uint32_t i = 0; i < threads; i++) {
        os_thread_join(running[i]);
        failed = shares[i].system ? shares[i].system : failed;
    }
    *rate = (double)bytes / (double)(os_clock_ns() - started);
    os_close(fd);
    if (failed)
        return bench_failed_system(bench, failed, path, "The tokens cannot be read.");
    return CLI_DONE;
}

static int verify_turn(struct bench *bench, const struct tokmap_dataset *dataset, uint32_t threads, double *rate)
{
    struct tokmap_verify_options options = TOKMAP_VERIFY_OPTIONS_INIT;
    struct tokmap_verify_result result = {.size = sizeof result};
    struct tokmap_error error = {0};
    options.threads = threads;
    uint64_t started = os_clock_ns();
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
    struct tokmap_error error = {0};
    uint32_t threads = (uint32_t)max64(1, min64(bench->options.threads, THREADS_MAX));
    int result = dataset_open(bench, TOKMAP_READ_AUTO, &dataset); /* as the command does */
    if (!result)
        result = dataset_warm(bench, dataset);
    if (!result && (tokmap_dataset_info(dataset, &info) || tokmap_dataset_shard(dataset, 0, &shard, &error)))
        result = bench_failed(bench, &error);
    for (uint64_t turn = 0; !result && turn <= bench_repeats(bench, 7) && !bench_stopped(); turn++) {
        double rate = 0, plain = 0;
        result = verify_turn(bench, dataset, threads, &rate);
        if (!result)
            result = read_turn(bench, shard.tokens_path, shard.tokens * info.width, threads, &plain);
        if (turn) { /* the first warms */
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

const struct bench_case case_verify = {"verify", "every byte read and hashed, beside the page cache's bandwidth", run};
