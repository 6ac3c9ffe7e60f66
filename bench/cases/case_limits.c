/* SPDX-License-Identifier: MIT */
/*
 * case_limits.c - what this machine can do at best: memory copies, reads from the page cache and from storage, the
 * clock, and the plain loop that gathers windows and widens their tokens. Other cases are compared with these figures.
 */
#include "cases.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/dataset_make.h"
#include "harness/direct_reads.h"
#include "harness/page_cache.h"
#include "harness/plain_loop.h"
#include "platform/os.h"

#define CACHE_BYTES_MOST ((uint64_t)1 << 30) /* bytes of a file that one repeat reads from the page cache */

/* ---- memory ---- */

static const struct memory_size {
    const char *metric;
    uint64_t bytes; /* of the source, and of the destination */
} memory_sizes[] = {
    {"memcpy_l1_gb_s", 12 << 10},
    {"memcpy_l2_gb_s", 256 << 10},
    {"memcpy_l3_gb_s", 4 << 20},
    {"memcpy_ram_gb_s", 256 << 20},
};

static double copy_repeat(void *into, const void *from, uint64_t bytes, double seconds)
{
    uint64_t length = (uint64_t)(seconds * 1e9), copied = 0;
    uint64_t burst = max64(1, (4 << 20) / bytes), started = os_clock_ns(), now = started;
    while (now - started < length) {
        for (uint64_t i = 0; i < burst; i++) {
            memcpy(into, from, (size_t)bytes);
            keep_value((uint64_t)(uintptr_t)into);
        }
        copied += burst * bytes;
        now = os_clock_ns();
    }
    return (double)copied / (double)(now - started);
}

static int measure_memory(struct bench *bench)
{
    static struct series found[sizeof memory_sizes / sizeof memory_sizes[0]];
    const size_t sizes = sizeof memory_sizes / sizeof memory_sizes[0];
    const uint64_t most = memory_sizes[sizes - 1].bytes;
    void *from = NULL, *into = NULL;
    int system = os_memory_new(most, true, &from);
    if (!system)
        system = os_memory_new(most, true, &into);
    if (!system) {
        memset(from, 1, (size_t)most);
        memset(into, 2, (size_t)most);
    }
    struct repeats repeats = repeats_begin(bench_repeats(bench, 7), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, system))
        for (size_t i = 0; i < sizes; i++)
            series_add(&found[i], copy_repeat(into, from, memory_sizes[i].bytes, bench_seconds(bench, 0.1)));
    os_memory_free(from, most);
    os_memory_free(into, most);
    if (system)
        return bench_no_memory(bench);
    for (size_t i = 0; i < sizes; i++)
        bench_result(bench, memory_sizes[i].metric, "GB/s", &found[i], NULL);
    return CLI_DONE;
}

/* ---- clock ---- */

static void measure_clock(struct bench *bench)
{
    struct series found = {.count = 0};
    struct repeats repeats = repeats_begin(bench_repeats(bench, 7), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, CLI_DONE)) {
        const uint64_t started = os_clock_ns();
        for (int i = 0; i < 100000; i++)
            keep_value(os_clock_ns());
        series_add(&found, (double)(os_clock_ns() - started) / 100000);
    }
    bench_result(bench, "clock_ns", "ns", &found, NULL);
}

/* ---- reading from the page cache ---- */

static int cache_repeat(const char *path, uint64_t bytes, double *rate)
{
    static char buffer[1 << 20];
    int fd;
    uint64_t at = 0;
    size_t got = 1;
    int system = os_open(path, OS_READ, &fd);
    if (system)
        return system;
    uint64_t started = os_clock_ns();
    while (!system && at < bytes && got) {
        system = os_pread(fd, buffer, sizeof buffer, at, &got);
        at += got;
    }
    *rate = (double)at / (double)(os_clock_ns() - started);
    os_close(fd);
    return system;
}

static int measure_cache(struct bench *bench, const char *path, uint64_t bytes)
{
    struct series found = {.count = 0};
    double rate = 0;
    struct repeats repeats = repeats_begin(bench_repeats(bench, 7), REPEATS_WARM_FIRST); /* the first fills the cache */
    while (repeats_next(&repeats, CLI_DONE)) {
        const int system = cache_repeat(path, min64(bytes, CACHE_BYTES_MOST), &rate);
        if (system)
            return bench_failed_system(bench, system, path, "The tokens cannot be read.");
        if (repeats.counts)
            series_add(&found, rate);
    }
    bench_result(bench, "page_cache_read_gb_s", "GB/s", &found, NULL);
    return CLI_DONE;
}

/* ---- reading from storage ---- */

/* Reads two pages at each of `reads` random places: what a window of 2,048 two-byte tokens and its last target needs.
 */
static int direct_repeat(struct direct_pool *pool, uint64_t bytes, uint64_t reads, uint64_t *state, double *rate)
{
    const uint64_t page = os_page_bytes(), places = bytes / page - 1;
    struct byte_range *ranges = calloc((size_t)reads, sizeof *ranges);
    double seconds = 0;
    if (!ranges)
        return ENOMEM;
    for (uint64_t i = 0; i < reads; i++)
        ranges[i] = (struct byte_range){random_below(state, places) * page, 2 * page};
    const int system = direct_pool_read(pool, ranges, reads, &seconds);
    *rate = (double)reads / seconds;
    free(ranges);
    return system;
}

static int measure_storage(struct bench *bench, const char *path, uint64_t bytes)
{
    static const struct {
        const char *metric;
        uint32_t depth;
        double share; /* of the reads of a repeat: a single thread is slower */
    } depths[] = {{"cold_read_8k_qd1_per_s", 1, 0.1}, {"cold_read_8k_qd64_per_s", 64, 1}};
    static struct series found[2];
    struct direct_pool *pools[2] = {NULL, NULL};
    uint64_t state = os_clock_ns(), reads = (uint64_t)(bench_seconds(bench, 0.5) * 64000) + 1;
    int system = bytes < 4 * os_page_bytes() ? EINVAL : 0;
    for (size_t i = 0; !system && i < 2; i++)
        system = direct_pool_new(&pools[i], path, depths[i].depth);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 7), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, system))
        for (size_t i = 0; !system && i < 2; i++) {
            double rate = 0;
            system = direct_repeat(pools[i], bytes, (uint64_t)((double)reads * depths[i].share) + 1, &state, &rate);
            series_add(&found[i], rate);
        }
    direct_pool_free(pools[0]);
    direct_pool_free(pools[1]);
    if (system == EINVAL) {
        bench_say(bench,
                  "cold reads are not measured: the file system does not support O_DIRECT, or the file is too small");
        return CLI_DONE;
    }
    if (system)
        return bench_failed_system(bench, system, path, "The tokens cannot be read with O_DIRECT.");
    for (size_t i = 0; i < 2; i++)
        bench_result(bench, depths[i].metric, "reads/s", &found[i], NULL);
    return CLI_DONE;
}

/* ---- the plain loop ---- */

static int measure_loop(struct bench *bench, const struct tokmap_dataset *dataset)
{
    static const struct {
        const char *metric;
        enum tokmap_type type;
        bool with_targets, widest;
    } forms[] = {
        {"gather_widen_i32_tokens_per_s", TOKMAP_I32, true, false},
        {"gather_widen_i64_tokens_per_s", TOKMAP_I64, true, false},
        {"gather_widen_i32_inputs_alone_tokens_per_s", TOKMAP_I32, false, false},
        {"gather_widen_i64_inputs_alone_tokens_per_s", TOKMAP_I64, false, false},
        {"gather_widen_i32_widest_vectors_tokens_per_s", TOKMAP_I32, true, true},
        {"gather_widen_i64_widest_vectors_tokens_per_s", TOKMAP_I64, true, true},
    };
    enum { FORMS = sizeof forms / sizeof forms[0] };
    static struct series found[FORMS];
    struct windows windows;
    struct outputs outputs;
    struct tokmap_error error = {0};
    uint64_t next = 0;
    if (windows_new(&windows, dataset, bench->options.seq_len, (uint64_t)1 << 20, 1, &error))
        return bench_failed(bench, &error);
    if (outputs_new(&outputs, bench->options.rows, bench->options.seq_len, TOKMAP_I64)) {
        windows_free(&windows);
        return bench_no_memory(bench);
    }
    struct repeats repeats = repeats_begin(bench_repeats(bench, 7), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats, CLI_DONE))
        for (size_t i = 0; i < FORMS; i++) {
            const struct plain_loop loop = {.widen = forms[i].widest ? plain_widen_widest() : plain_widen_base,
                                            .windows = &windows,
                                            .outputs = &outputs,
                                            .rows = bench->options.rows,
                                            .type = forms[i].type,
                                            .with_targets = forms[i].with_targets};
            const double rate = plain_loop_repeat(&loop, &next, bench_seconds(bench, 0.3), NULL);
            if (repeats.counts)
                series_add(&found[i], rate);
        }
    outputs_free(&outputs);
    windows_free(&windows);
    for (size_t i = 0; i < FORMS; i++)
        bench_result(bench, forms[i].metric, "tokens/s", &found[i], NULL);
    return CLI_DONE;
}

static int run(struct bench *bench)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_shard_info shard = {.size = sizeof shard};
    struct tokmap_dataset_info info = {.size = sizeof info};
    int result = dataset_open(bench, TOKMAP_READ_MAPPED, &dataset);
    if (!result)
        result = dataset_get_info(bench, dataset, &info, &shard);
    const uint64_t bytes = shard.tokens * info.width;
    if (!result) {
        measure_clock(bench);
        result = page_cache_warm(bench, dataset);
    }
    if (!result)
        result = measure_memory(bench);
    if (!result)
        result = measure_cache(bench, shard.tokens_path, bytes);
    if (!result)
        result = measure_loop(bench, dataset);
    if (!result)
        result = measure_storage(bench, shard.tokens_path, bytes);
    tokmap_dataset_close(dataset);
    return bench_stopped() ? CLI_FAILED : result;
}

const struct bench_case case_limits = {"limits",
                                       "memory copies, cached and cold reads, the plain gather-and-widen loop", run};
