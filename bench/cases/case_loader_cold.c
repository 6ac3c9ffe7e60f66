/*
 * case_loader_cold.c - batches from storage: every token has left the page cache, the windows are at random, reading is
 * by pread. The limit is the same number of page spans of other windows of the same order, read with O_DIRECT by 64
 * threads. Which of the two goes first changes from turn to turn.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "case_loader.h"
#include "cli/cli.h"
#include "common/bytes.h"
#include "common/error.h"
#include "harness/dataset_make.h"
#include "harness/direct_reads.h"
#include "platform/os.h"
#include "harness/reader.h"

#define DEPTH 64

struct cold {
    struct tokmap_dataset *dataset;
    const char *name;
    uint64_t width;
    struct tokmap_shard_info shard; /* the largest: the direct reads are in it */
    struct direct_pool *pool;
    struct byte_range *spans;
    uint64_t steps; /* of a turn, for either side */
    uint64_t rows;  /* steps * rows */
    struct series rate, limit, amplification, amplification_limit, cpu;
};

/* ---- the loader's turn ---- */

static int cold_loader(struct bench *bench, struct cold *cold, uint64_t seed)
{
    struct tokmap_run *run = NULL;
    struct reader reader = {.loader = NULL};
    uint64_t tokens = 0;
    enum tokmap_status status = TOKMAP_OK;
    int result = dataset_drop(bench, cold->dataset);
    if (!result)
        result = run_make(bench, cold->name, TOKMAP_READ_PREAD, seed, cold->steps, &run);
    if (result)
        return result;
    uint64_t bytes = os_storage_bytes_read(), cpu = os_process_cpu_ns(), started = os_clock_ns();
    result = reader_open(bench, &reader, run, 1, TOKMAP_INPUTS | TOKMAP_TARGETS, 0);
    while (!result && !(status = reader_next(&reader)) && !bench_stopped())
        tokens += reader.batch.tokens;
    double seconds = (double)(os_clock_ns() - started) / 1e9;
    cpu = os_process_cpu_ns() - cpu;
    if (!result && status != TOKMAP_END && !bench_stopped())
        result = bench_failed(bench, &reader.error);
    reader_close(&reader);
    tokmap_run_close(run);
    uint64_t read = os_storage_bytes_read();
    series_add(&cold->rate, (double)tokens / seconds);
    series_add(&cold->cpu, (double)cpu / 1e9 / ((double)tokens / 1e6));
    if (read != UINT64_MAX && tokens) {
        double useful = (double)(tokens / bench->options.seq_len * (bench->options.seq_len + 1) * cold->width);
        series_add(&cold->amplification, (double)(read - bytes) / useful);
    }
    return result;
}

/* ---- the limit's turn ---- */

/* The page spans of the rows after those that the loader takes, where they lie in the one shard. */
static int cold_spans(struct bench *bench, struct cold *cold, uint64_t seed, uint64_t *count)
{
    struct tokmap_run *run = NULL;
    struct tokmap_error error = {0};
    uint64_t window = bench->options.seq_len + 1, bytes = 0;
    int result = run_make(bench, cold->name, TOKMAP_READ_PREAD, seed, TOKMAP_FOREVER, &run);
    *count = 0;
    for (uint64_t step = cold->steps; !result && step < 64 * cold->steps && *count < cold->rows; step++)
        for (uint64_t row = 0; row < bench->options.rows && *count < cold->rows; row++) {
            struct tokmap_place place;
            if (tokmap_run_locate(run, step, row, &place, &error)) {
                result = bench_failed(bench, &error);
                break;
            }
            uint64_t first = place.first_token - cold->shard.first_token; /* wraps where it is before the shard */
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
    result =
        dataset_drop(bench, cold->dataset); /* O_DIRECT has no use of pages that are there, but must look at them */
    if (result)
        return result;
    int system = direct_pool_read(cold->pool, cold->spans, count, &seconds);
    if (system)
        return bench_failed_system(bench, system, cold->shard.tokens_path, "O_DIRECT reads failed.");
    series_add(&cold->limit, (double)(count * bench->options.seq_len) / seconds);
    return CLI_DONE;
}

/* ---- the case ---- */

static int cold_open(struct bench *bench, struct cold *cold)
{
    struct tokmap_dataset_info info = {.size = sizeof info};
    struct tokmap_error error = {0};
    int result = dataset_get(bench, &cold->name);
    if (!result)
        result = dataset_open(bench, TOKMAP_READ_PREAD, &cold->dataset);
    if (!result)
        result = dataset_drop(bench, cold->dataset); /* says early where that cannot be */
    if (result || tokmap_dataset_info(cold->dataset, &info))
        return CLI_FAILED;
    for (uint64_t i = 0; i < info.shards; i++) {
        struct tokmap_shard_info shard = {.size = sizeof shard};
        if (tokmap_dataset_shard(cold->dataset, i, &shard, &error))
            return bench_failed(bench, &error);
        if (!i || shard.tokens > cold->shard.tokens)
            cold->shard = shard;
    }
    cold->width = info.width;
    uint64_t windows = info.tokens / bench->options.seq_len;
    cold->steps = (uint64_t)(bench_seconds(bench, 0.5) * 64000) / bench->options.rows;
    cold->steps = max64(1, min64(cold->steps, windows / bench->options.rows / 2));
    cold->rows = cold->steps * bench->options.rows;
    if ((bench->options.seq_len + 1) * cold->width > DIRECT_READ_MOST - 2 * os_page_bytes()) {
        (void)error_set(&error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET, "Give a smaller --seq-len.");
        return bench_failed(bench, &error);
    }
    cold->spans = calloc((size_t)cold->rows, sizeof *cold->spans);
    if (!cold->spans)
        return bench_no_memory(bench);
    int system = direct_pool_new(&cold->pool, cold->shard.tokens_path, DEPTH);
    if (system == EINVAL) {
        bench_talk(bench, "the file system has no O_DIRECT: results stand without their limit");
        return CLI_DONE;
    }
    if (system)
        return bench_failed_system(bench, system, cold->shard.tokens_path, "The limit's readers could not be started.");
    return CLI_DONE;
}

int loader_cold(struct bench *bench)
{
    static struct cold cold;
    bench->name = "cold";
    int result = cold_open(bench, &cold);
    for (uint64_t turn = 0; !result && turn < bench_repeats(bench, 9) && !bench_stopped(); turn++) {
        bool limit_first = turn % 2;
        if (limit_first && cold.pool)
            result = cold_limit(bench, &cold, turn + 1);
        if (!result)
            result = cold_loader(bench, &cold, turn + 1);
        if (!result && !limit_first && cold.pool)
            result = cold_limit(bench, &cold, turn + 1);
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
    return CLI_DONE;
}
