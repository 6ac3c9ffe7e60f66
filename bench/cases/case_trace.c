/* SPDX-License-Identifier: MIT */
/*
 * case_trace.c - what a trace costs, and how fast it is replayed.
 *
 * With a producer thread, the producer hashes rows, and the consumer only adds a number. So the processor time that the
 * consumer's thread spends in next() is compared, with and without a trace. The calls follow each other while the ring
 * has batches, and the clock stops while it is filled again. Without a producer thread (inline), the rates of two
 * loaders are compared. Loaders of a pair take turns. Replaying is the command `tokmap replay`, from its start to its
 * end.
 */
#include "cases.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/child.h"
#include "harness/dataset_make.h"
#include "harness/made_files.h"
#include "harness/page_cache.h"
#include "harness/reader.h"
#include "platform/os.h"

#define BOTH (TOKMAP_INPUTS | TOKMAP_TARGETS)
#define REPLAY_BYTES ((uint64_t)4 << 30) /* of tokens */

enum { PLAIN, TRACED, SIDES };

struct tracing {
    struct tokmap_run *run;
    struct reader readers[SIDES];
    struct series found[SIDES];
};

static int open_side(struct bench *bench, struct tracing *tracing, int side, uint32_t threads, const char *trace)
{
    struct reader *reader = &tracing->readers[side];
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    reader_clear(reader);
    options.rows = bench->options.rows;
    options.threads = threads;
    options.fields = BOTH;
    options.trace = trace;
    if (tokmap_loader_open(&reader->loader, tracing->run, &options, &reader->error))
        return bench_failed(bench, &reader->error);
    if (outputs_new(&reader->outputs, tokmap_loader_rows(reader->loader), bench->options.seq_len, TOKMAP_I32))
        return bench_no_memory(bench);
    reader->out.inputs = reader->outputs.inputs;
    reader->out.targets = reader->outputs.targets;
    reader->out.type = TOKMAP_I32;
    return CLI_DONE;
}

static int open_both(struct bench *bench, struct tracing *tracing, uint32_t threads, const char *label)
{
    char path[BENCH_PATH];
    memset(tracing->found, 0, sizeof tracing->found);
    int result = made_file(bench, label, path);
    if (!result)
        result = open_side(bench, tracing, PLAIN, threads, NULL);
    if (!result)
        result = open_side(bench, tracing, TRACED, threads, path);
    return result;
}

static void close_both(struct tracing *tracing)
{
    for (int i = 0; i < SIDES; i++)
        reader_close(&tracing->readers[i]);
}

/* ---- with a producer thread ---- */

/* Adds the nanoseconds of processor time that a call of next() takes while the ring is ahead. */
static int consumer_repeat(struct bench *bench, struct reader *reader, double seconds, struct series *series)
{
    struct tokmap_stats stats;
    uint64_t ns = 0, calls = 0;
    const uint64_t started = os_clock_ns();
    int result = CLI_DONE;
    while (!result && !bench_stopped() && (double)(os_clock_ns() - started) / 1e9 < seconds) {
        result = reader_fill(bench, reader);
        reader_stats(reader, &stats);
        const uint64_t before = os_thread_cpu_ns();
        for (uint32_t i = 0; i < stats.ring_ready && !result; i++, calls++)
            if (reader_next(reader))
                result = bench_failed(bench, &reader->error);
        ns += os_thread_cpu_ns() - before;
    }
    if (calls)
        series_add(series, (double)ns / (double)calls / 1000);
    return result;
}

static int measure_consumer(struct bench *bench, struct tracing *tracing)
{
    int result = open_both(bench, tracing, 1, "consumer.trace");
    struct repeats repeats = repeats_begin(bench_repeats(bench, 21), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats, result))
        for (int i = 0; i < SIDES && !result; i++) {
            struct series unused = {.count = 0};
            result = consumer_repeat(bench, &tracing->readers[i], bench_seconds(bench, 0.2),
                                     repeats.counts ? &tracing->found[i] : &unused);
        }
    if (!result && !bench_stopped()) {
        const double plain = series_median(&tracing->found[PLAIN]), traced = series_median(&tracing->found[TRACED]);
        bench_result(bench, "next_traced_us", "us", &tracing->found[TRACED], &tracing->found[PLAIN]);
        bench_derived(bench, "trace_percent", "%", 100 * (traced / plain - 1), &tracing->found[TRACED]);
    }
    close_both(tracing);
    return result;
}

/* ---- inline ---- */

static int measure_inline(struct bench *bench, struct tracing *tracing)
{
    struct tokmap_dataset_info info = {.size = sizeof info};
    struct tokmap_source_info source = {.size = sizeof source};
    int result = open_both(bench, tracing, 0, "inline.trace");
    if (!result)
        result = run_get_info(bench, tracing->run, &source, &info);
    /* The first access to a mapped page costs a fault, so every page is touched before. */
    const uint64_t batches = 2 * (source.windows / bench->options.rows + 1);
    for (uint64_t i = 0; i < batches && !result && !bench_stopped(); i++)
        for (int k = 0; k < SIDES && !result; k++)
            if (reader_next(&tracing->readers[k]))
                result = bench_failed(bench, &tracing->readers[k].error);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 9), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats, result))
        for (int i = 0; i < SIDES && !result; i++) {
            double rate = 0;
            result =
                reader_repeat(bench, &tracing->readers[i], TOKMAP_I32, bench_seconds(bench, 0.3), NULL, &rate, NULL);
            if (repeats.counts)
                series_add(&tracing->found[i], rate);
        }
    if (!result && !bench_stopped()) {
        const double plain = series_median(&tracing->found[PLAIN]), traced = series_median(&tracing->found[TRACED]);
        bench_result(bench, "tokens_per_s_traced", "tokens/s", &tracing->found[TRACED], &tracing->found[PLAIN]);
        bench_derived(bench, "trace_inline_percent", "%", 100 * (plain / traced - 1), &tracing->found[TRACED]);
    }
    close_both(tracing);
    return result;
}

/* ---- replaying ---- */

static int write_run(struct bench *bench, const char *text, char path[BENCH_PATH])
{
    int fd;
    const int result = made_file(bench, "trace.run", path);
    if (result)
        return result;
    int system = os_open(path, OS_WRITE_NEW, &fd);
    if (!system) {
        system = os_write(fd, text, strlen(text));
        os_close(fd);
    }
    return system ? bench_failed_system(bench, system, path, "The run cannot be written.") : CLI_DONE;
}

/* Writes the trace of the first steps, and replays it. */
static int measure_replay(struct bench *bench, struct tracing *tracing, const char *run_path)
{
    static struct series rates;
    struct tokmap_dataset_info info = {.size = sizeof info};
    struct tokmap_source_info source = {.size = sizeof source};
    char path[BENCH_PATH];
    int result = made_file(bench, "replay.trace", path);
    if (!result)
        result = run_get_info(bench, tracing->run, &source, &info);
    if (!result)
        result = open_side(bench, tracing, TRACED, 1, path);
    const uint64_t batch_bytes = bench->options.batch * (bench->options.seq_len + 1) * max64(1, info.width);
    const uint64_t steps = REPLAY_BYTES / batch_bytes + 1;
    uint64_t done = 0;
    while (!result && done < steps && !bench_stopped()) {
        if (reader_next(&tracing->readers[TRACED]))
            result = bench_failed(bench, &tracing->readers[TRACED].error);
        done += tracing->readers[TRACED].batch.last_in_step;
    }
    reader_close(&tracing->readers[TRACED]);
    const char *const arguments[] = {"replay", run_path, "--trace", path, "--quiet", NULL};
    struct repeats repeats = repeats_begin(bench_repeats(bench, 5), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats, result)) {
        struct child_usage usage = {.seconds = 0};
        result = child_run_tokmap(bench, arguments, &usage);
        if (!result && repeats.counts)
            series_add(&rates, (double)(done * batch_bytes) / 1e9 / usage.seconds);
    }
    if (!result && !bench_stopped())
        bench_result(bench, "replay_gb_s", "GB/s", &rates, NULL);
    return result;
}

static int run(struct bench *bench)
{
    static struct tracing tracing;
    static char text[2 * BENCH_PATH], path[BENCH_PATH];
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_error error = {0};
    const char *name = NULL;
    int result = dataset_name(bench, &name);
    if (!result)
        result = dataset_open(bench, TOKMAP_READ_PREAD, &dataset);
    if (!result)
        result = page_cache_warm(bench, dataset);
    tokmap_dataset_close(dataset);
    if (result)
        return result;
    /* A run looks for a relative name from its own folder, which is --dir. */
    char *here = NULL;
    const bool relative = *name != '/' && !strchr(name, ':') && !os_real_path(".", &here);
    (void)snprintf(text, sizeof text, "seq_len %" PRIu64 "\nbatch %" PRIu64 "\nsource data \"%s%s%s\"\n",
                   bench->options.seq_len, bench->options.batch, relative ? here : "", relative ? "/" : "", name);
    free(here);
    bench->name = "loader";
    result = write_run(bench, text, path);
    if (!result && tokmap_run_open(&tracing.run, path, &error))
        result = bench_failed(bench, &error);
    if (!result)
        result = measure_consumer(bench, &tracing);
    if (!result)
        result = measure_inline(bench, &tracing);
    if (!result)
        result = measure_replay(bench, &tracing, path);
    tokmap_run_close(tracing.run);
    return result || bench_stopped() ? CLI_FAILED : CLI_DONE;
}

const struct bench_case case_trace = {"trace", "what a trace costs the consumer and inline, and the rate of replay",
                                      run};
