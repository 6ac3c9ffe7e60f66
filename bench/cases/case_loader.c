/* SPDX-License-Identifier: MIT */
/*
 * case_loader.c - batches of shuffled windows on the host, warm.
 *
 * Three measurements: the rate at which a loader without a producer thread delivers batches, from the mapping and by
 * pread, beside the plain loop over the same mapping; the waits of a consumer that takes batches at half the rate at
 * which a producer thread could deliver them; and the memory that a process with a loader uses in addition to the ring.
 *
 * With --cold the case runs case_loader_cold.c instead, and with --device case_loader_device.c.
 */
#include "cases.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "case_loader_calls.h"
#include "case_loader_cold.h"
#include "case_loader_device.h"
#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/child.h"
#include "harness/dataset_make.h"
#include "harness/page_cache.h"
#include "harness/plain_loop.h"
#include "harness/reader.h"
#include "platform/os.h"

#define BOTH (TOKMAP_INPUTS | TOKMAP_TARGETS)

struct found {
    /* Rates in tokens per second, and processor seconds per million tokens. */
    struct series i32, i64, unaligned, pread, cpu, cpu_pread, first_pass, first_pass_pread, producer, producer_pread,
        paced;
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
    struct plain_file file; /* where it reads them with pread */
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
    reader->out.type = TOKMAP_I32;
    for (uint64_t i = 0; i < batches && !bench_stopped(); i++)
        if (reader_next(reader))
            return bench_failed(bench, &reader->error);
    *seconds = (double)(os_clock_ns() - started) / 1e9;
    return CLI_DONE;
}

static int flat_out_open(struct bench *bench, struct loader_case *it, const char *name)
{
    struct tokmap_source_info source = {.size = sizeof source};
    struct tokmap_dataset_info info = {.size = sizeof info};
    struct tokmap_shard_info shard = {.size = sizeof shard};
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
    series_add(&it->found->first_pass, tokens / seconds);
    if (!result)
        result = first_pass(bench, &it->pread, it->pass, &seconds);
    series_add(&it->found->first_pass_pread, tokens / seconds);
    return result;
}

/* Runs the plain loop as the limit of the loader's outputs of `type`. samples may be NULL. */
static double plain_repeat(struct bench *bench, struct loader_case *it, enum tokmap_type type, bool with_targets,
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
    const int result = reader_repeat(bench, reader, TOKMAP_I32, seconds, NULL, rate, NULL);
    reader->out.inputs = aligned.inputs;
    reader->out.targets = aligned.targets;
    return result;
}

static int flat_out_repeat(struct bench *bench, struct loader_case *it)
{
    const double seconds = bench_seconds(bench, 0.4);
    struct found *found = it->found;
    double rate = 0, cpu = 0;
    int result = reader_repeat(bench, &it->mapped, TOKMAP_I32, seconds, NULL, &rate, &cpu);
    series_add(&found->i32, rate);
    series_add(&found->cpu, cpu);
    series_add(&found->plain_i32, plain_repeat(bench, it, TOKMAP_I32, true, NULL, NULL));
    if (!result)
        result = unaligned_repeat(bench, &it->mapped, seconds, &rate);
    series_add(&found->unaligned, rate);
    if (!result)
        result = reader_repeat(bench, &it->mapped, TOKMAP_I64, seconds, NULL, &rate, NULL);
    series_add(&found->i64, rate);
    series_add(&found->plain_i64, plain_repeat(bench, it, TOKMAP_I64, true, NULL, NULL));
    if (!result)
        result = reader_repeat(bench, &it->pread, TOKMAP_I32, seconds, NULL, &rate, &cpu);
    series_add(&found->pread, rate);
    series_add(&found->cpu_pread, cpu);
    series_add(&found->plain_pread, plain_repeat(bench, it, TOKMAP_I32, true, &it->file, NULL));
    series_add(&found->plain_i32_inputs, plain_repeat(bench, it, TOKMAP_I32, false, NULL, NULL));
    samples_clear(&it->samples);
    if (!result)
        result = reader_repeat(bench, &it->mapped, TOKMAP_I32, seconds, &it->samples, NULL, NULL);
    spread_add(&found->next, &it->samples, 1000);
    samples_clear(&it->samples);
    (void)plain_repeat(bench, it, TOKMAP_I32, true, NULL, &it->samples);
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
    int result = reader_repeat(bench, &it->ahead, TOKMAP_I32, bench_seconds(bench, 1) / 2, NULL, &rate, NULL);
    series_add(&found->producer, rate);
    if (!result)
        result = reader_repeat(bench, &it->ahead_pread, TOKMAP_I32, bench_seconds(bench, 1) / 2, NULL, &rate, NULL);
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
    struct tokmap_stats stats = {.size = sizeof stats};
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
    bench_result(bench, "tokens_per_s_first_pass", "tokens/s", &found->first_pass, NULL);
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
        return strcmp(bench->options.child, FIRST_OPENING_CHILD) ? child_rss(bench) : first_opening_child(bench);
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
    return measure_memory(bench, name);
}

const struct bench_case case_loader = {
    "loader", "batches on the host: rate, latency, CPU time, waits, memory; --cold: from storage; --device: to a GPU",
    run};
