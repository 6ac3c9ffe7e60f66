/* SPDX-License-Identifier: MIT */
/*
 * case_loader_cold.c - batches of shuffled windows from cold storage: all tokens have been dropped from the page cache,
 * and the loader reads with pread.
 *
 * The limit is what the storage delivers: as many windows of the same order, at other places, read as whole pages with
 * O_DIRECT by 64 threads. The loader and the limit take turns in going first, so that neither profits from what the
 * other left in a cache of the storage device.
 */
#include "case_loader_cold.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/error.h"
#include "harness/dataset_make.h"
#include "harness/direct_reads.h"
#include "harness/operand.h"
#include "harness/page_cache.h"
#include "harness/reader.h"
#include "platform/os.h"

#define DEPTH 64 /* threads of the limit, each with one read in flight */

struct cold {
    struct tokmap_dataset *dataset;
    const char *name;
    uint64_t width;
    struct tokmap_shard_info shard; /* the largest one, from which the limit reads */
    struct direct_pool *pool;
    struct byte_range *spans;
    uint64_t steps; /* of one repeat of the loader */
    uint64_t rows;  /* in those steps, and reads of one repeat of the limit */
    struct series rate, limit, amplification, amplification_limit, cpu;
};

/* ---- the loader ---- */

static int cold_loader(struct bench *bench, struct cold *cold, uint64_t seed)
{
    struct tokmap_run *run = NULL;
    struct reader reader = {.loader = NULL};
    uint64_t tokens = 0;
    enum tokmap_status status = TOKMAP_OK;
    int result = page_cache_drop(bench, cold->dataset);
    if (!result)
        result = run_make(bench, cold->name, TOKMAP_READ_PREAD, seed, cold->steps, &run);
    if (result)
        return result;
    const uint64_t bytes = os_storage_bytes_read(), cpu = os_process_cpu_ns(), started = os_clock_ns();
    result = reader_open(bench, &reader, run, 1, TOKMAP_INPUTS | TOKMAP_TARGETS, 0);
    while (!result && !(status = reader_next(&reader)) && !bench_stopped())
        tokens += reader.batch.tokens;
    const double seconds = (double)(os_clock_ns() - started) / 1e9;
    const double cpu_seconds = (double)(os_process_cpu_ns() - cpu) / 1e9;
    if (!result && status != TOKMAP_END && !bench_stopped())
        result = bench_failed(bench, &reader.error);
    reader_close(&reader);
    tokmap_run_close(run);
    const uint64_t read = os_storage_bytes_read();
    series_add(&cold->rate, (double)tokens / seconds);
    series_add(&cold->cpu, cpu_seconds / ((double)tokens / 1e6));
    if (read != UINT64_MAX && tokens) {
        const double useful = (double)(tokens / bench->options.seq_len * (bench->options.seq_len + 1) * cold->width);
        series_add(&cold->amplification, (double)(read - bytes) / useful);
    }
    return result;
}

/* ---- the limit ---- */

/* Finds the pages of the rows that follow those of the loader in the same order, as far as these rows are in the chosen
 * shard. */
static int cold_spans(struct bench *bench, struct cold *cold, uint64_t seed, uint64_t *count)
{
    struct tokmap_run *run = NULL;
    struct tokmap_error error = {0};
    const uint64_t window = bench->options.seq_len + 1;
    uint64_t bytes = 0;
    int result = run_make(bench, cold->name, TOKMAP_READ_PREAD, seed, TOKMAP_FOREVER, &run);
    *count = 0;
    for (uint64_t step = cold->steps; !result && step < 64 * cold->steps && *count < cold->rows; step++)
        for (uint64_t row = 0; row < operand_slice(bench) && *count < cold->rows; row++) {
            struct tokmap_place place;
            if (tokmap_run_locate(run, step, row, &place, &error)) {
                result = bench_failed(bench, &error);
                break;
            }
            const uint64_t first = place.first_token - cold->shard.first_token; /* huge if it is before the shard */
            if (first >= cold->shard.tokens || window > cold->shard.tokens - first)
                continue;
            cold->spans[*count] = page_span(first * cold->width, window * cold->width);
            bytes += cold->spans[(*count)++].bytes;
        }
    tokmap_run_close(run);
    if (*count)
        series_add(&cold->amplification_limit, (double)bytes / (double)(*count * window * cold->width));
    return result;
}

static int cold_limit(struct bench *bench, struct cold *cold, uint64_t seed)
{
    uint64_t count = 0;
    double seconds = 0;
    int result = cold_spans(bench, cold, seed, &count);
    if (result)
        return result;
    /* O_DIRECT must look for cached pages of the ranges that it reads, which takes longer if there are some. */
    result = page_cache_drop(bench, cold->dataset);
    if (result)
        return result;
    const int system = direct_pool_read(cold->pool, cold->spans, count, &seconds);
    if (system)
        return bench_failed_system(bench, system, cold->shard.tokens_path, "The limit's reads with O_DIRECT failed.");
    series_add(&cold->limit, (double)(count * bench->options.seq_len) / seconds);
    return CLI_DONE;
}

/* ---- the case ---- */

static int cold_open(struct bench *bench, struct cold *cold)
{
    struct tokmap_dataset_info info = {.size = sizeof info};
    struct tokmap_error error = {0};
    int result = dataset_name(bench, &cold->name);
    if (!result)
        result = dataset_open(bench, TOKMAP_READ_PREAD, &cold->dataset);
    if (!result)
        result = page_cache_drop(bench, cold->dataset); /* fails early if the tokens cannot be dropped */
    if (!result)
        result = dataset_get_info(bench, cold->dataset, &info, NULL);
    if (result)
        return result;
    for (uint64_t i = 0; i < info.shards; i++) {
        struct tokmap_shard_info shard = {.size = sizeof shard};
        if (tokmap_dataset_shard(cold->dataset, i, &shard, &error))
            return bench_failed(bench, &error);
        if (!i || shard.tokens > cold->shard.tokens)
            cold->shard = shard;
    }
    cold->width = info.width;
    const uint64_t windows = info.tokens / bench->options.seq_len;
    cold->steps = (uint64_t)(bench_seconds(bench, 0.5) * 64000) / operand_slice(bench);
    cold->steps = max64(1, min64(cold->steps, windows / bench->options.batch / 2));
    cold->rows = cold->steps * operand_slice(bench);
    if ((bench->options.seq_len + 1) * cold->width > DIRECT_READ_MOST - 2 * os_page_bytes()) {
        (void)error_set(&error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                        "A window is larger than one read of the limit (1 MiB); give a smaller --seq-len.");
        return bench_failed(bench, &error);
    }
    cold->spans = calloc((size_t)cold->rows, sizeof *cold->spans);
    if (!cold->spans)
        return bench_no_memory(bench);
    const int system = direct_pool_new(&cold->pool, cold->shard.tokens_path, DEPTH);
    if (system == EINVAL) {
        bench_say(bench, "the file system does not support O_DIRECT, so the results have no limit");
        return CLI_DONE;
    }
    if (system)
        return bench_failed_system(bench, system, cold->shard.tokens_path, "The limit's threads cannot be started.");
    return CLI_DONE;
}

int loader_cold(struct bench *bench)
{
    static struct cold cold;
    bench->name = "cold";
    int result = cold_open(bench, &cold);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 9), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, result)) {
        const uint64_t seed = repeats.number + 1; /* other windows in each repeat */
        const bool limit_first = repeats.number % 2;
        if (limit_first && cold.pool)
            result = cold_limit(bench, &cold, seed);
        if (!result)
            result = cold_loader(bench, &cold, seed);
        if (!result && !limit_first && cold.pool)
            result = cold_limit(bench, &cold, seed);
    }
    direct_pool_free(cold.pool);
    free(cold.spans);
    tokmap_dataset_close(cold.dataset);
    if (result || bench_stopped())
        return CLI_FAILED;
    bench_result(bench, "tokens_per_s", "tokens/s", &cold.rate, cold.limit.count ? &cold.limit : NULL);
    struct series ratios = {.count = 0};
    for (size_t i = 0; i < cold.limit.count && i < cold.rate.count; i++)
        series_add(&ratios, cold.rate.values[i] / cold.limit.values[i]);
    bench_derived(bench, "ratio", "1", series_median(&cold.rate) / series_median(&cold.limit), &ratios);
    bench_result(bench, "amplification", "1", &cold.amplification, &cold.amplification_limit);
    bench_result(bench, "cpu_s_per_mtok", "s/Mtoken", &cold.cpu, NULL);
    const double rate = series_median(&cold.rate);
    if (cold.limit.count)
        bench_answer(bench,
                     "One loader reads %.3g M tokens/s (%.2g GB/s) from this storage, %.2f times the rate of %d "
                     "threads that read the same windows without a loader.",
                     rate / 1e6, rate * (double)cold.width / 1e9, rate / series_median(&cold.limit), DEPTH);
    return CLI_DONE;
}
