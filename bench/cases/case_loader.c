/* SPDX-License-Identifier: MIT */
/*
 * case_loader.c - batches of shuffled windows on the host, warm.
 *
 * Two measurements: the rate at which a loader without a producer thread delivers batches, from the mapping and by
 * pread, beside the plain loop over the same mapping; and the first pass of a loader.
 *
 * With --cold the case runs loader_cold() instead, and with --device case_loader_device.c.
 */
#include "cases.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/error.h"
#include "harness/bench_data.h"
#include "harness/child.h"
#include "harness/loops.h"
#include "harness/storage.h"
#include "platform/os.h"

/* ==== the case `loader` with --cold ==== */

/*
 * Batches of shuffled windows from cold storage: all tokens have been dropped from the page cache, and the loader reads
 * with pread.
 *
 * The limit is what the storage delivers: as many windows of the same order, at other places, read as whole pages with
 * O_DIRECT by 64 threads. The loader and the limit take turns in going first, so that neither profits from what the
 * other left in a cache of the storage device.
 */

#define DEPTH 64 /* threads of the limit, each with one read in flight */

struct cold {
    struct opened data;
    struct tokmap_shard_info shard; /* the largest one, from which the limit reads */
    struct direct_pool *pool;
    struct byte_range *spans;
    uint64_t steps; /* of one repeat of the loader */
    uint64_t rows;  /* in those steps, and reads of one repeat of the limit */
    struct series rate, limit, amplification, amplification_limit, cpu;
};

/* ---- the loader ---- */

static void cold_loader(struct bench *bench, struct cold *cold, uint64_t seed)
{
    const struct tokmap_loader_options options = reader_options(bench, 1, READER_BOTH);
    struct reader reader;
    uint64_t tokens = 0;
    enum tokmap_status status;
    page_cache_drop(bench, cold->data.dataset);
    struct tokmap_run *run = run_make(bench, dataset_name(bench), TOKMAP_READ_PREAD, seed, cold->steps);
    const uint64_t bytes = os_storage_bytes_read(), cpu = os_process_cpu_ns(), started = os_clock_ns();
    reader_open(bench, &reader, run, &options);
    while (!(status = reader_next(&reader)) && !bench_stopped())
        tokens += reader.batch.tokens;
    const double seconds = (double)(os_clock_ns() - started) / 1e9;
    const double cpu_seconds = (double)(os_process_cpu_ns() - cpu) / 1e9;
    if (status != TOKMAP_END && !bench_stopped())
        bench_failed(bench, &reader.error);
    reader_close(&reader);
    tokmap_run_close(run);
    const uint64_t read = os_storage_bytes_read();
    series_add(&cold->rate, (double)tokens / seconds);
    series_add(&cold->cpu, cpu_seconds / ((double)tokens / 1e6));
    if (read != UINT64_MAX && tokens) {
        const uint64_t windows = tokens / bench->options.seq_len;
        const double useful = (double)(windows * (bench->options.seq_len + 1) * cold->data.info.width);
        series_add(&cold->amplification, (double)(read - bytes) / useful);
    }
}

/* ---- the limit ---- */

/* Finds the pages of the rows that follow those of the loader in the same order, as far as these rows are in the chosen
 * shard. Returns their number. */
static uint64_t cold_spans(struct bench *bench, struct cold *cold, uint64_t seed)
{
    struct tokmap_run *run = run_make(bench, dataset_name(bench), TOKMAP_READ_PREAD, seed, TOKMAP_FOREVER);
    const uint64_t window = bench->options.seq_len + 1, width = cold->data.info.width;
    uint64_t count = 0, bytes = 0;
    for (uint64_t step = cold->steps; step < 64 * cold->steps && count < cold->rows; step++)
        for (uint64_t row = 0; row < operand_slice(bench) && count < cold->rows; row++) {
            struct tokmap_place place;
            bench_check(bench, tokmap_run_locate(run, step, row, &place, &bench->error));
            const uint64_t first = place.first_token - cold->shard.first_token; /* huge if it is before the shard */
            if (first >= cold->shard.tokens || window > cold->shard.tokens - first)
                continue;
            cold->spans[count] = page_span(first * width, window * width);
            bytes += cold->spans[count++].bytes;
        }
    tokmap_run_close(run);
    if (count)
        series_add(&cold->amplification_limit, (double)bytes / (double)(count * window * width));
    return count;
}

static void cold_limit(struct bench *bench, struct cold *cold, uint64_t seed)
{
    const uint64_t count = cold_spans(bench, cold, seed);
    double seconds = 0;
    /* O_DIRECT must look for cached pages of the ranges that it reads, which takes longer if there are some. */
    page_cache_drop(bench, cold->data.dataset);
    bench_check_system(bench, direct_pool_read(cold->pool, cold->spans, count, &seconds), cold->shard.tokens_path,
                       "The limit's reads with O_DIRECT failed.");
    series_add(&cold->limit, (double)(count * bench->options.seq_len) / seconds);
}

/* ---- the case ---- */

static void cold_open(struct bench *bench, struct cold *cold)
{
    cold->data = dataset_open(bench, TOKMAP_READ_PREAD);
    page_cache_drop(bench, cold->data.dataset); /* fails early if the tokens cannot be dropped */
    cold->shard = cold->data.first;
    for (uint64_t i = 1; i < cold->data.info.shards; i++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        bench_check(bench, tokmap_dataset_shard(cold->data.dataset, i, &shard, &bench->error));
        if (shard.tokens > cold->shard.tokens)
            cold->shard = shard;
    }
    const uint64_t windows = cold->data.info.tokens / bench->options.seq_len;
    cold->steps = (uint64_t)(bench_seconds(bench, 0.5) * 64000) / operand_slice(bench);
    cold->steps = max64(1, min64(cold->steps, windows / bench->options.batch / 2));
    cold->rows = cold->steps * operand_slice(bench);
    if ((bench->options.seq_len + 1) * cold->data.info.width > DIRECT_READ_MOST - 2 * os_page_bytes())
        bench_check(bench, error_set(&bench->error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                                     "A window is larger than one read of the limit (1 MiB); give a smaller "
                                     "--seq-len."));
    cold->spans = bench_new(bench, cold->rows, sizeof *cold->spans);
    const int system = direct_pool_new(&cold->pool, cold->shard.tokens_path, DEPTH);
    if (system == EINVAL)
        bench_say(bench, "the file system does not support O_DIRECT, so the results have no limit");
    else
        bench_check_system(bench, system, cold->shard.tokens_path, "The limit's threads cannot be started.");
}

/* Runs it. Its results have the case name "cold". */
static int loader_cold(struct bench *bench)
{
    static struct cold cold;
    bench->name = "cold";
    cold_open(bench, &cold);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 9), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats)) {
        const uint64_t seed = repeats.number + 1; /* other windows in each repeat */
        const bool limit_first = repeats.number % 2;
        if (limit_first && cold.pool)
            cold_limit(bench, &cold, seed);
        cold_loader(bench, &cold, seed);
        if (!limit_first && cold.pool)
            cold_limit(bench, &cold, seed);
    }
    direct_pool_free(cold.pool);
    free(cold.spans);
    tokmap_dataset_close(cold.data.dataset);
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
                     rate / 1e6, rate * (double)cold.data.info.width / 1e9, rate / series_median(&cold.limit), DEPTH);
    return CLI_DONE;
}

/* ==== the case `loader` ==== */

struct found {
    /* Rates in tokens per second, and processor seconds per million tokens. */
    struct series i32, i64, pread, cpu, cpu_pread, plain_i32, plain_i64, plain_pread;
    struct spread next, plain_next; /* microseconds of calls */
};

struct loader_case {
    struct tokmap_run *mapped_run, *pread_run;
    struct reader mapped, pread; /* without a producer thread */
    struct windows windows;      /* of the plain loop */
    struct plain_file file;      /* file from which it reads them with pread */
    uint64_t next;               /* index of its next window */
    struct samples samples;
    struct found *found;
};

/* ---- without a producer thread ---- */

static void flat_out_open(struct bench *bench, struct loader_case *it, const char *name)
{
    const struct tokmap_loader_options options = reader_options(bench, 0, READER_BOTH);
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    it->mapped_run = run_make(bench, name, TOKMAP_READ_MAPPED, 1, TOKMAP_FOREVER);
    it->pread_run = run_make(bench, name, TOKMAP_READ_PREAD, 1, TOKMAP_FOREVER);
    reader_open(bench, &it->mapped, it->mapped_run, &options);
    reader_open(bench, &it->pread, it->pread_run, &options);
    const struct run_data data = run_get_data(bench, it->mapped_run);
    page_cache_warm(bench, data.source.dataset); /* before any page is mapped */
    /* The plain loop reads the same mapping as the loader, so both have the same page sizes. */
    windows_new(bench, &it->windows, data.source.dataset, READER_WINDOWS_MOST, 2);
    bench_check(bench, tokmap_dataset_shard(data.source.dataset, 0, &shard, &bench->error));
    plain_file_open(bench, &it->file, &it->windows, &shard);
    (void)reader_first_pass(bench, &it->mapped, data.source.windows);
    (void)reader_first_pass(bench, &it->pread, data.source.windows);
}

/* Runs the plain loop as the limit of the loader's outputs of `type`. samples may be NULL. */
static double plain_repeat(struct bench *bench, struct loader_case *it, enum tokmap_id_type type,
                           const struct plain_file *file, struct samples *samples)
{
    const struct plain_loop loop = {.windows = &it->windows,
                                    .outputs = &it->mapped.outputs,
                                    .rows = bench->options.rows,
                                    .type = type,
                                    .file = file};
    return plain_loop_repeat(&loop, &it->next, bench_seconds(bench, 0.4), samples);
}

static void flat_out_repeat(struct bench *bench, struct loader_case *it)
{
    const double seconds = bench_seconds(bench, 0.4);
    struct found *found = it->found;
    double cpu = 0;
    series_add(&found->i32, reader_repeat(bench, &it->mapped, TOKMAP_ID_I32, seconds, NULL, &cpu));
    series_add(&found->cpu, cpu);
    series_add(&found->plain_i32, plain_repeat(bench, it, TOKMAP_ID_I32, NULL, NULL));
    series_add(&found->i64, reader_repeat(bench, &it->mapped, TOKMAP_ID_I64, seconds, NULL, NULL));
    series_add(&found->plain_i64, plain_repeat(bench, it, TOKMAP_ID_I64, NULL, NULL));
    series_add(&found->pread, reader_repeat(bench, &it->pread, TOKMAP_ID_I32, seconds, NULL, &cpu));
    series_add(&found->cpu_pread, cpu);
    series_add(&found->plain_pread, plain_repeat(bench, it, TOKMAP_ID_I32, &it->file, NULL));
    samples_clear(&it->samples);
    (void)reader_repeat(bench, &it->mapped, TOKMAP_ID_I32, seconds, &it->samples, NULL);
    spread_add(&found->next, &it->samples, 1000);
    samples_clear(&it->samples);
    (void)plain_repeat(bench, it, TOKMAP_ID_I32, NULL, &it->samples);
    spread_add(&found->plain_next, &it->samples, 1000);
}

/* ---- the first pass, which maps pages and compares them with their hashes, beside the pass after it ---- */

#define FIRST_PASS_CHILD "first-pass" /* the copy of this program whose system calls are counted */

/* Makes `passes` passes of a loader that has just been opened, and sets rates[i] to the tokens per second of pass i.
 * Returns the batches of a pass, which ends after READER_WINDOWS_MOST rows. */
static uint64_t passes_make(struct bench *bench, const char *name, uint32_t threads, uint32_t passes, double *rates)
{
    const struct tokmap_loader_options options = reader_options(bench, threads, READER_BOTH);
    struct tokmap_run *run = run_make(bench, name, TOKMAP_READ_MAPPED, 1, TOKMAP_FOREVER);
    struct reader reader;
    const uint64_t windows = run_get_data(bench, run).source.windows;
    const uint64_t batches = max64(1, min64(windows, READER_WINDOWS_MOST) / bench->options.rows);
    reader_open(bench, &reader, run, &options);
    for (uint32_t pass = 0; pass < passes; pass++) {
        const uint64_t started = os_clock_ns();
        reader_take(bench, &reader, batches);
        rates[pass] = (double)(batches * bench->options.rows * bench->options.seq_len) /
                      ((double)(os_clock_ns() - started) / 1e9);
    }
    reader_close(&reader);
    tokmap_run_close(run);
    return batches;
}

static int child_first_pass(struct bench *bench)
{
    double rate;
    (void)printf("batches=%" PRIu64 "\n", passes_make(bench, bench->options.dataset, 0, 1, &rate));
    return CLI_DONE;
}

/* Returns the system calls for a batch that strace counts in a copy of this program, those of its start included; 0
 * without strace. */
static double calls_count(struct bench *bench, const char *name)
{
    static const char strace[] = "/usr/bin/strace";
    char output[8192] = "", rows[32], seq_len[32];
    struct os_stat program;
    if (os_stat(strace, &program)) {
        bench_say(bench, "%s is missing, so system calls are not counted", strace);
        return 0;
    }
    (void)snprintf(rows, sizeof rows, "%" PRIu64, bench->options.rows);
    (void)snprintf(seq_len, sizeof seq_len, "%" PRIu64, bench->options.seq_len);
    const char *const arguments[] = {
        "-fqqc",     "-Ucalls,name", "-o",    "/dev/stdout", bench->self, CHILD_MARK, FIRST_PASS_CHILD,
        bench->name, "--seq-len",    seq_len, "--rows",      rows,        name,       NULL};
    child_run(bench, strace, arguments, output, sizeof output, NULL);
    const char *line = strstr(output, " total\n");
    while (line && line > output && line[-1] != '\n')
        line--;
    return line ? strtod(line, NULL) / child_number(output, "batches") : 0;
}

/* Measures the first pass. The dataset must be in the page cache, and this process must have no mapping of it. */
static void measure_first_pass(struct bench *bench, const char *name)
{
    static struct series first[2], second[2], calls;
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 5), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats))
        for (uint32_t threads = 0; threads < 2; threads++) {
            double rates[2] = {0, 0};
            (void)passes_make(bench, name, threads, 2, rates);
            series_add(&first[threads], rates[0]);
            series_add(&second[threads], rates[1]);
        }
    const double found = calls_count(bench, name);
    bench_stop_check(bench);
    bench_result(bench, "tokens_per_s_first_pass", "tokens/s", &first[0], &second[0]);
    bench_result(bench, "tokens_per_s_first_pass_producer", "tokens/s", &first[1], &second[1]);
    if (found > 0)
        series_add(&calls, found);
    bench_result(bench, "first_pass_system_calls", "calls", &calls, NULL);
}

/* ---- the case ---- */

static void print_found(struct bench *bench, const struct found *found)
{
    bench_result(bench, "tokens_per_s", "tokens/s", &found->i32, &found->plain_i32);
    bench_result(bench, "tokens_per_s_i64", "tokens/s", &found->i64, &found->plain_i64);
    bench_result(bench, "tokens_per_s_pread", "tokens/s", &found->pread, &found->plain_i32);
    bench_result(bench, "plain_pread_tokens_per_s", "tokens/s", &found->plain_pread, NULL);
    bench_result(bench, "cpu_s_per_mtok", "s/Mtoken", &found->cpu, NULL);
    bench_result(bench, "cpu_s_per_mtok_pread", "s/Mtoken", &found->cpu_pread, NULL);
    bench_spread(bench, "next", "us", &found->next, &found->plain_next);
    const double rate = series_median(&found->i32), plain = series_median(&found->plain_i32);
    bench_answer(
        bench,
        "One thread delivers %.2f G tokens/s from memory, as 32-bit inputs and targets: %.2f times the rate of "
        "a loop in plain C in the same minutes. Other machines have other rates; compare that ratio, and ask "
        "`tokmap-bench check` whether it is enough.",
        rate / 1e9, rate / plain);
}

static int run(struct bench *bench)
{
    static struct found found;
    struct loader_case it = {.found = &found};
    if (bench->options.child)
        return !strcmp(bench->options.child, FIRST_OPENING_CHILD) ? first_opening_child(bench)
                                                                  : child_first_pass(bench);
    if (bench->options.device_given)
        return loader_device(bench);
    if (bench->options.cold)
        return loader_cold(bench);
    const char *name = dataset_name(bench);
    bench_samples_new(bench, &it.samples, (size_t)1 << 21);
    flat_out_open(bench, &it, name);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 7), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats))
        flat_out_repeat(bench, &it);
    reader_close(&it.mapped);
    reader_close(&it.pread);
    plain_file_close(&it.file);
    windows_free(&it.windows);
    tokmap_run_close(it.mapped_run);
    tokmap_run_close(it.pread_run);
    samples_free(&it.samples);
    print_found(bench, &found);
    measure_first_pass(bench, name);
    return CLI_DONE;
}

const struct bench_case case_loader = {
    "loader", "batches on the host: rate, latency, CPU time, the first pass; --cold: from storage; --device: to a GPU",
    run};
