/* SPDX-License-Identifier: MIT */
/*
 * case_loader.c - batches of shuffled windows on the host, warm.
 *
 * Four measurements: the rate at which a loader without a producer thread delivers batches, from the mapping and by
 * pread, beside the plain loop over the same mapping; the waits of a consumer that takes batches at half the rate at
 * which a producer thread could deliver them; the first pass of a loader (case_loader_first.c); and the memory that a
 * process with a loader uses in addition to the ring.
 *
 * With --cold the case runs loader_cold() instead, and with --device case_loader_device.c.
 */
#include "cases.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case_loader_device.h"
#include "case_loader_first.h"
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
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
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
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
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

/* Runs it. Its results have the case name "cold". Returns CLI_DONE, or CLI_FAILED after a message. */
static int loader_cold(struct bench *bench)
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

/* ==== the case `loader` ==== */

#define BOTH (TOKMAP_INPUTS | TOKMAP_TARGETS)

struct found {
    /* Rates in tokens per second, and processor seconds per million tokens. */
    struct series i32, i64, unaligned, pread, cpu, cpu_pread, first_pass_pread, producer, producer_pread, paced;
    struct series plain_i32, plain_i64, plain_i32_inputs, plain_pread;
    /* Microseconds of calls. idle: of the empty stretch between two looks at the clock. */
    struct spread next, plain_next;
    struct spread wait, idle, taken, ahead;
    struct series waits;
};

struct loader_case {
    struct tokmap_run *mapped_run, *pread_run;
    struct reader mapped, pread; /* without a producer thread */
    /* With a producer thread: two that write outputs, and one that returns row pointers only. */
    struct reader ahead, ahead_pread, rows;
    uint64_t pass;          /* batches that touch every page of the windows */
    struct windows windows; /* of the plain loop */
    struct plain_file file; /* file from which it reads them with pread */
    uint64_t next;          /* index of its next window */
    struct samples samples, gaps;
    struct found *found;
};

/* ---- without a producer thread ---- */

/* Takes batches until the loader has touched every page once, or 2^20 windows of a large dataset. The first access to a
 * mapped page costs a fault, and the first read of a page by pread reads all of it and compares it with its hash. */
static int first_pass(struct bench *bench, struct reader *reader, uint64_t batches, double *seconds)
{
    uint64_t started = os_clock_ns();
    reader->out.type = TOKMAP_ID_I32;
    for (uint64_t i = 0; i < batches && !bench_stopped(); i++)
        if (reader_next(reader))
            return bench_failed(bench, &reader->error);
    *seconds = (double)(os_clock_ns() - started) / 1e9;
    return CLI_DONE;
}

static int flat_out_open(struct bench *bench, struct loader_case *it, const char *name)
{
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    struct tokmap_error error = {0};
    int result = run_make(bench, name, TOKMAP_READ_MAPPED, 1, TOKMAP_FOREVER, &it->mapped_run);
    if (!result)
        result = run_make(bench, name, TOKMAP_READ_PREAD, 1, TOKMAP_FOREVER, &it->pread_run);
    if (!result)
        result = reader_open(bench, &it->mapped, it->mapped_run, 0, BOTH, 0);
    if (!result)
        result = reader_open(bench, &it->pread, it->pread_run, 0, BOTH, 0);
    if (!result)
        result = run_get_info(bench, it->mapped_run, &source, &info);
    if (!result)
        result = page_cache_warm(bench, source.dataset); /* before any page is mapped */
    /* The plain loop reads the same mapping as the loader, so both have the same page sizes. */
    if (!result && windows_new(&it->windows, source.dataset, bench->options.seq_len, (uint64_t)1 << 20, 2, &error))
        result = bench_failed(bench, &error);
    if (!result)
        result = dataset_get_info(bench, source.dataset, &info, &shard);
    if (result)
        return result;
    const int system = plain_file_open(&it->file, &it->windows, shard.tokens_path, shard.tokens);
    if (system)
        return bench_failed_system(bench, system, shard.tokens_path, "The tokens cannot be opened.");
    it->pass = min64(source.windows, (uint64_t)1 << 20) / bench->options.rows + 1;
    const double tokens = (double)(it->pass * bench->options.rows * bench->options.seq_len);
    double seconds = 0;
    result = first_pass(bench, &it->mapped, it->pass, &seconds);
    if (!result)
        result = first_pass(bench, &it->pread, it->pass, &seconds);
    series_add(&it->found->first_pass_pread, tokens / seconds);
    return result;
}

/* Runs the plain loop as the limit of the loader's outputs of `type`. samples may be NULL. */
static double plain_repeat(struct bench *bench, struct loader_case *it, enum tokmap_id_type type, bool with_targets,
                           const struct plain_file *file, struct samples *samples)
{
    const struct plain_loop loop = {.widen = plain_widen_base,
                                    .windows = &it->windows,
                                    .outputs = &it->mapped.outputs,
                                    .rows = bench->options.rows,
                                    .type = type,
                                    .with_targets = with_targets,
                                    .file = file};
    return plain_loop_repeat(&loop, &it->next, bench_seconds(bench, 0.4), samples);
}

/* Outputs at 16 modulo 64 bytes, which is where malloc() puts large blocks. The buffers have room for int64. */
static int unaligned_repeat(struct bench *bench, struct reader *reader, double seconds, double *rate)
{
    const struct tokmap_out aligned = reader->out;
    reader->out.inputs = (char *)aligned.inputs + 16;
    reader->out.targets = (char *)aligned.targets + 16;
    const int result = reader_repeat(bench, reader, TOKMAP_ID_I32, seconds, NULL, rate, NULL);
    reader->out.inputs = aligned.inputs;
    reader->out.targets = aligned.targets;
    return result;
}

static int flat_out_repeat(struct bench *bench, struct loader_case *it)
{
    const double seconds = bench_seconds(bench, 0.4);
    struct found *found = it->found;
    double rate = 0, cpu = 0;
    int result = reader_repeat(bench, &it->mapped, TOKMAP_ID_I32, seconds, NULL, &rate, &cpu);
    series_add(&found->i32, rate);
    series_add(&found->cpu, cpu);
    series_add(&found->plain_i32, plain_repeat(bench, it, TOKMAP_ID_I32, true, NULL, NULL));
    if (!result)
        result = unaligned_repeat(bench, &it->mapped, seconds, &rate);
    series_add(&found->unaligned, rate);
    if (!result)
        result = reader_repeat(bench, &it->mapped, TOKMAP_ID_I64, seconds, NULL, &rate, NULL);
    series_add(&found->i64, rate);
    series_add(&found->plain_i64, plain_repeat(bench, it, TOKMAP_ID_I64, true, NULL, NULL));
    if (!result)
        result = reader_repeat(bench, &it->pread, TOKMAP_ID_I32, seconds, NULL, &rate, &cpu);
    series_add(&found->pread, rate);
    series_add(&found->cpu_pread, cpu);
    series_add(&found->plain_pread, plain_repeat(bench, it, TOKMAP_ID_I32, true, &it->file, NULL));
    series_add(&found->plain_i32_inputs, plain_repeat(bench, it, TOKMAP_ID_I32, false, NULL, NULL));
    samples_clear(&it->samples);
    if (!result)
        result = reader_repeat(bench, &it->mapped, TOKMAP_ID_I32, seconds, &it->samples, NULL, NULL);
    spread_add(&found->next, &it->samples, 1000);
    samples_clear(&it->samples);
    (void)plain_repeat(bench, it, TOKMAP_ID_I32, true, NULL, &it->samples);
    spread_add(&found->plain_next, &it->samples, 1000);
    return result;
}

/* ---- with a producer thread, and a consumer at half its rate ---- */

/* Takes a batch in each period and spins for the rest of it. it->samples receives the time of each call. it->gaps
 * receives the time between two looks at the clock with nothing in between: what the machine alone does to a consumer.
 */
static int paced_repeat(struct bench *bench, struct loader_case *it, struct reader *reader, uint64_t period_ns)
{
    const uint64_t length = (uint64_t)(bench_seconds(bench, 1) * 1e9), started = os_clock_ns();
    uint64_t due = started;
    samples_clear(&it->samples);
    samples_clear(&it->gaps);
    while (due - started < length && !bench_stopped()) {
        const uint64_t before = os_clock_ns();
        if (reader_next(reader))
            return bench_failed(bench, &reader->error);
        const uint64_t after = os_clock_ns(), again = os_clock_ns();
        samples_add(&it->samples, after - before);
        samples_add(&it->gaps, again - after);
        due += period_ns;
        if (due < again) /* after a delay, do not try to catch up */
            due = again;
        while (os_clock_ns() < due)
            os_relax();
    }
    return CLI_DONE;
}

static int producer_open(struct bench *bench, struct loader_case *it)
{
    double seconds;
    int result = reader_open(bench, &it->ahead, it->mapped_run, 1, BOTH, 0);
    if (!result)
        result = first_pass(bench, &it->ahead, it->pass, &seconds);
    if (!result)
        result = reader_open(bench, &it->ahead_pread, it->pread_run, 1, BOTH, 0);
    if (!result)
        result = first_pass(bench, &it->ahead_pread, it->pass, &seconds);
    if (!result)
        result = reader_open(bench, &it->rows, it->mapped_run, 1, 0, 0);
    if (!result)
        result = first_pass(bench, &it->rows, it->pass, &seconds);
    return result;
}

static int producer_repeat(struct bench *bench, struct loader_case *it)
{
    struct tokmap_stats before, after;
    struct found *found = it->found;
    const uint64_t tokens = bench->options.rows * bench->options.seq_len;
    double rate = 1;
    int result = reader_repeat(bench, &it->ahead, TOKMAP_ID_I32, bench_seconds(bench, 1) / 2, NULL, &rate, NULL);
    series_add(&found->producer, rate);
    if (!result)
        result = reader_repeat(bench, &it->ahead_pread, TOKMAP_ID_I32, bench_seconds(bench, 1) / 2, NULL, &rate, NULL);
    series_add(&found->producer_pread, rate);
    series_add(&found->paced, series_median(&found->producer) / 2);
    const uint64_t period = (uint64_t)(2e9 * (double)tokens / series_median(&found->producer));
    if (!result)
        result = reader_fill(bench, &it->ahead);
    reader_stats(&it->ahead, &before);
    if (!result)
        result = paced_repeat(bench, it, &it->ahead, period);
    reader_stats(&it->ahead, &after);
    if (!result) {
        series_add(&found->wait.p50, waits_at(&before, &after, 0.5) / 1000);
        series_add(&found->wait.p99, waits_at(&before, &after, 0.99) / 1000);
        series_add(&found->wait.p999, waits_at(&before, &after, 0.999) / 1000);
        series_add(&found->wait.largest, waits_at(&before, &after, 1) / 1000);
        series_add(&found->waits, (double)(after.waits - before.waits));
        spread_add(&found->ahead, &it->samples, 1000);
        spread_add(&found->idle, &it->gaps, 1000);
        result = reader_fill(bench, &it->rows);
    }
    /* A call that returns row pointers only consists of the hand-over of a slot. */
    if (!result)
        result = paced_repeat(bench, it, &it->rows, period);
    if (!result)
        spread_add(&found->taken, &it->samples, 1000);
    return result;
}

/* ---- memory: measured in a child process, without this process's buffers ---- */

static int child_rss(struct bench *bench)
{
    struct tokmap_run *run = NULL;
    struct reader reader = {.loader = NULL};
    struct tokmap_stats stats = TOKMAP_STATS_INIT;
    uint64_t most = 0;
    int result = run_make(bench, bench->options.dataset, TOKMAP_READ_PREAD, 3, TOKMAP_FOREVER, &run);
    if (!result)
        result = reader_open(bench, &reader, run, 1, BOTH, 0);
    const uint64_t length = (uint64_t)(bench_seconds(bench, 0.5) * 1e9), started = os_clock_ns();
    for (uint64_t i = 0; !result && (i < 1000 || os_clock_ns() - started < length); i++) {
        if (reader_next(&reader))
            result = bench_failed(bench, &reader.error);
        else if (i % 500 == 499)
            most = max64(most, os_memory_resident());
    }
    if (!result) {
        reader_stats(&reader, &stats);
        (void)printf("rss=%" PRIu64 " ring=%" PRIu64 "\n", most, stats.ring_bytes);
    }
    reader_close(&reader);
    tokmap_run_close(run);
    return result;
}

static int memory_above_ring(struct bench *bench, const char *name, double *mib)
{
    char output[256] = "";
    const int result = child_run_copy(bench, "rss", name, output, sizeof output, NULL);
    *mib = (child_number(output, "rss") - child_number(output, "ring")) / 1048576;
    return result;
}

static int measure_memory(struct bench *bench, const char *name)
{
    static struct series given, sparse;
    char huge[BENCH_PATH];
    bool unsupported = false;
    int result = dataset_make_sparse(bench, "rss", 1, (uint64_t)2000000000000, huge, &unsupported);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 3), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, result)) {
        double mib = 0;
        result = memory_above_ring(bench, name, &mib);
        series_add(&given, mib);
        if (!result && !unsupported) {
            result = memory_above_ring(bench, huge, &mib);
            series_add(&sparse, mib);
        }
    }
    if (result || bench_stopped())
        return CLI_FAILED;
    const bool worse = sparse.count && series_median(&sparse) > series_median(&given);
    bench_result(bench, "rss_above_ring_mib", "MiB", worse ? &sparse : &given, NULL);
    bench_result(bench, "rss_above_ring_mib_dataset", "MiB", &given, NULL);
    bench_result(bench, "rss_above_ring_mib_4tb", "MiB", &sparse, NULL);
    return CLI_DONE;
}

/* ---- the case ---- */

static void print_found(struct bench *bench, const struct found *found)
{
    bench_result(bench, "tokens_per_s", "tokens/s", &found->i32, &found->plain_i32);
    bench_result(bench, "tokens_per_s_unaligned", "tokens/s", &found->unaligned, &found->plain_i32);
    bench_result(bench, "tokens_per_s_i64", "tokens/s", &found->i64, &found->plain_i64);
    bench_result(bench, "tokens_per_s_pread", "tokens/s", &found->pread, &found->plain_i32);
    bench_result(bench, "tokens_per_s_first_pass_pread", "tokens/s", &found->first_pass_pread, NULL);
    bench_result(bench, "plain_pread_tokens_per_s", "tokens/s", &found->plain_pread, NULL);
    bench_result(bench, "plain_inputs_alone_tokens_per_s", "tokens/s", &found->plain_i32_inputs, NULL);
    bench_result(bench, "cpu_s_per_mtok", "s/Mtoken", &found->cpu, NULL);
    bench_result(bench, "cpu_s_per_mtok_pread", "s/Mtoken", &found->cpu_pread, NULL);
    bench_spread(bench, "next", "us", &found->next, &found->plain_next);
    bench_result(bench, "tokens_per_s_producer", "tokens/s", &found->producer, &found->plain_i32);
    bench_result(bench, "tokens_per_s_producer_pread", "tokens/s", &found->producer_pread, &found->plain_i32);
    bench_result(bench, "paced_tokens_per_s", "tokens/s", &found->paced, NULL);
    bench_spread(bench, "wait", "us", &found->wait, NULL);
    bench_spread(bench, "next_ahead", "us", &found->ahead, &found->plain_next);
    bench_spread_alone(bench, "take", "us", &found->taken, &found->idle);
    bench_result(bench, "waits", "calls", &found->waits, NULL);
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
    const char *name = NULL;
    if (bench->options.child)
        return !strcmp(bench->options.child, FIRST_OPENING_CHILD) ? first_opening_child(bench)
               : !strcmp(bench->options.child, FIRST_PASS_CHILD)  ? loader_first_pass_child(bench)
                                                                  : child_rss(bench);
    if (bench->options.device_given)
        return loader_device(bench);
    if (bench->options.cold)
        return loader_cold(bench);
    int result = dataset_name(bench, &name);
    if (!result && (!samples_new(&it.samples, (size_t)1 << 21) || !samples_new(&it.gaps, (size_t)1 << 21)))
        result = bench_no_memory(bench);
    if (!result)
        result = flat_out_open(bench, &it, name);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 7), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, result))
        result = flat_out_repeat(bench, &it);
    if (!result)
        result = producer_open(bench, &it);
    repeats = repeats_begin(bench_repeats(bench, 5), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, result))
        result = producer_repeat(bench, &it);
    reader_close(&it.mapped);
    reader_close(&it.pread);
    reader_close(&it.ahead);
    reader_close(&it.ahead_pread);
    reader_close(&it.rows);
    plain_file_close(&it.file);
    windows_free(&it.windows);
    tokmap_run_close(it.mapped_run);
    tokmap_run_close(it.pread_run);
    samples_free(&it.samples);
    samples_free(&it.gaps);
    if (result || bench_stopped())
        return CLI_FAILED;
    print_found(bench, &found);
    result = loader_first_pass(bench, name);
    return result ? result : measure_memory(bench, name);
}

const struct bench_case case_loader = {
    "loader", "batches on the host: rate, latency, CPU time, waits, memory; --cold: from storage; --device: to a GPU",
    run};
