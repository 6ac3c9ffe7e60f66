/* SPDX-License-Identifier: MIT */
/*
 * case_sources.c - the cases `sources` and `trace`: what a loader does beyond plain windows.
 *
 * `sources` is loaders of runs that are more than one dataset of shards, each beside the same loader without that:
 * tokens with a mask beside tokens without, eight sources beside one, another project's file beside the shard that has
 * the same bytes, and four targets for each input beside one.
 *
 * All loaders work without a producer thread, so that a rate is what the work itself costs. The two loaders of a pair
 * take turns.
 */
#include "cases.h"

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

#define BOTH (TOKMAP_INPUTS | TOKMAP_TARGETS)
#define SOURCES 8 /* of the mixture */
#define AHEAD 4   /* targets of each input */

/* A run, its loader, and what was measured. */
struct side {
    struct tokmap_run *run;
    struct reader reader;
    void *ahead; /* memory of targets_ahead */
    struct series rates;
};

/* A loader and what it is compared with. */
struct pair {
    struct side measured, limit;
};

struct how {
    uint32_t fields;
    uint32_t mask_targets;
    uint64_t lookahead;
};

static int side_open(struct bench *bench, struct side *side, const char *sources, const struct how *how)
{
    static char text[SOURCES * BENCH_PATH];
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    reader_clear(&side->reader);
    (void)snprintf(text, sizeof text, "seq_len %" PRIu64 "\nlookahead %" PRIu64 "\nbatch %" PRIu64 "\n%s",
                   bench->options.seq_len, how->lookahead, bench->options.batch, sources);
    options.rows = bench->options.rows;
    options.threads = 0;
    options.fields = how->fields;
    options.mask_targets = how->mask_targets;
    if (tokmap_run_parse(&side->run, text, NULL, &side->reader.error) || tokmap_run_source(side->run, 0, &source) ||
        tokmap_loader_open(&side->reader.loader, side->run, &options, &side->reader.error))
        return bench_failed(bench, &side->reader.error);
    const uint64_t rows = tokmap_loader_rows(side->reader.loader);
    if (outputs_new(&side->reader.outputs, rows, bench->options.seq_len, TOKMAP_ID_I32))
        return bench_no_memory(bench);
    if (how->fields & TOKMAP_TARGETS_AHEAD)
        side->ahead = calloc((size_t)(rows * bench->options.seq_len * how->lookahead), 4);
    if ((how->fields & TOKMAP_TARGETS_AHEAD) && !side->ahead)
        return bench_no_memory(bench);
    side->reader.out.inputs = side->reader.outputs.inputs;
    side->reader.out.targets = side->reader.outputs.targets;
    side->reader.out.targets_ahead = side->ahead;
    side->reader.out.type = TOKMAP_ID_I32;
    const int result = page_cache_warm(bench, source.dataset);
    /* The first access to a mapped page costs a fault, so every page is touched once, and the pages are populated. A
     * mixture has parts of one dataset, so one of them warms all. */
    const uint64_t windows = source.windows * (strstr(sources, "part1") ? SOURCES : 1);
    const uint64_t batches = 2 * (min64(windows, (uint64_t)1 << 20) / bench->options.rows + 1);
    for (uint64_t i = 0; !result && i < batches && !bench_stopped(); i++)
        if (reader_next(&side->reader))
            return bench_failed(bench, &side->reader.error);
    return result;
}

static void side_close(struct side *side)
{
    reader_close(&side->reader);
    tokmap_run_close(side->run);
    free(side->ahead);
}

/* Compares two texts of sources, and prints the rate and the ratio under two names. */
static int compare(struct bench *bench, const char *rate, const char *ratio, const char *sources, const struct how *how,
                   const char *limit_sources, const struct how *limit_how)
{
    struct pair *pair = calloc(1, sizeof *pair);
    if (!pair)
        return bench_no_memory(bench);
    int result = side_open(bench, &pair->limit, limit_sources, limit_how);
    if (!result)
        result = side_open(bench, &pair->measured, sources, how);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 9), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, result)) {
        const double seconds = bench_seconds(bench, 0.3);
        double found = 0;
        result = reader_repeat(bench, &pair->limit.reader, TOKMAP_ID_I32, seconds, NULL, &found, NULL);
        series_add(&pair->limit.rates, found);
        if (!result)
            result = reader_repeat(bench, &pair->measured.reader, TOKMAP_ID_I32, seconds, NULL, &found, NULL);
        series_add(&pair->measured.rates, found);
    }
    if (!result && !bench_stopped()) {
        bench_result(bench, rate, "tokens/s", &pair->measured.rates, &pair->limit.rates);
        bench_derived(bench, ratio, "x", series_median(&pair->measured.rates) / series_median(&pair->limit.rates),
                      &pair->measured.rates);
    }
    side_close(&pair->measured);
    side_close(&pair->limit);
    free(pair);
    return result;
}

/* ---- the texts ---- */

static void one_source(char text[2 * BENCH_PATH], const char *name)
{
    (void)snprintf(text, 2 * BENCH_PATH, "source data \"%s\"\n", name);
}

/* Names the same tokens as a mixture of eight parts. */
static void eight_sources(char text[SOURCES * BENCH_PATH], const char *name, uint64_t tokens)
{
    size_t used = 0;
    for (uint64_t i = 0; i < SOURCES; i++)
        used += (size_t)snprintf(text + used, SOURCES * BENCH_PATH - used,
                                 "source part%" PRIu64 " \"%s#tokens=%" PRIu64 "..%" PRIu64 "\"\n", i, name,
                                 tokens / SOURCES * i, tokens / SOURCES * (i + 1));
    (void)snprintf(text + used, SOURCES * BENCH_PATH - used, "phase 0 natural\n");
}

static int compare_ahead(struct bench *bench, const char *text)
{
    const struct how one = {BOTH, 0, AHEAD}, ahead = {TOKMAP_INPUTS | TOKMAP_TARGETS_AHEAD, 0, AHEAD};
    return compare(bench, "tokens_per_s_ahead", "ahead_ratio", text, &ahead, text, &one);
}

static int compare_mask(struct bench *bench, const char *plain)
{
    static char masked[BENCH_PATH], text[2 * BENCH_PATH];
    const struct how how = {BOTH, 1, 1};
    if (bench->options.dataset) {
        bench_say(bench, "mask_ratio is left out, since the dataset with a mask has to be made like the one without");
        return CLI_DONE;
    }
    const int result = dataset_make_masked(bench, masked);
    if (result)
        return result;
    one_source(text, masked);
    return compare(bench, "tokens_per_s_mask", "mask_ratio", text, &how, plain, &how);
}

static int sources_run(struct bench *bench)
{
    static char plain[2 * BENCH_PATH], other[2 * BENCH_PATH], parts[SOURCES * BENCH_PATH];
    const struct how both = {BOTH, 0, 1};
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    const char *name = NULL;
    int result = dataset_name(bench, &name);
    if (!result)
        result = dataset_open(bench, TOKMAP_READ_MAPPED, &dataset);
    if (!result)
        result = dataset_get_info(bench, dataset, &info, &shard);
    if (result) {
        tokmap_dataset_close(dataset);
        return result;
    }
    one_source(plain, name);
    eight_sources(parts, name, info.tokens);
    (void)snprintf(other, sizeof other, "source data \"raw:%s,width=%" PRIu32 ",eod=%" PRIu64 "\"\n", shard.tokens_path,
                   info.width, info.vocabulary - 1);
    tokmap_dataset_close(dataset);
    bench->name = "loader";
    result = compare(bench, "tokens_per_s_mixture", "mixture_ratio", parts, &both, plain, &both);
    if (!result && info.shards == 1)
        result = compare(bench, "tokens_per_s_foreign", "foreign_ratio", other, &both, plain, &both);
    if (!result)
        result = compare_ahead(bench, plain);
    if (!result)
        result = compare_mask(bench, plain);
    return result || bench_stopped() ? CLI_FAILED : CLI_DONE;
}

const struct bench_case case_sources = {
    "sources", "loaders of mixtures, masks, other projects' files, and several targets, beside windows of one source",
    sources_run};

/* ==== the case `trace` ==== */

/*
 * What a trace costs, and how fast it is replayed.
 *
 * With a producer thread, the producer hashes rows, and the consumer only adds a number. So the processor time that the
 * consumer's thread spends in next() is compared, with and without a trace. The calls follow each other while the ring
 * has batches, and the clock stops while it is filled again. Without a producer thread (inline), the rates of two
 * loaders are compared. Loaders of a pair take turns. Replaying is the command `tokmap replay`, from its start to its
 * end.
 */

#define BOTH (TOKMAP_INPUTS | TOKMAP_TARGETS)
#define REPLAY_BYTES ((uint64_t)4 << 30) /* of tokens; with --seconds S, S times as many */

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
    if (outputs_new(&reader->outputs, tokmap_loader_rows(reader->loader), bench->options.seq_len, TOKMAP_ID_I32))
        return bench_no_memory(bench);
    reader->out.inputs = reader->outputs.inputs;
    reader->out.targets = reader->outputs.targets;
    reader->out.type = TOKMAP_ID_I32;
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
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
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
                reader_repeat(bench, &tracing->readers[i], TOKMAP_ID_I32, bench_seconds(bench, 0.3), NULL, &rate, NULL);
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
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    char path[BENCH_PATH];
    int result = made_file(bench, "replay.trace", path);
    if (!result)
        result = run_get_info(bench, tracing->run, &source, &info);
    if (!result)
        result = open_side(bench, tracing, TRACED, 1, path);
    const uint64_t batch_bytes = bench->options.batch * (bench->options.seq_len + 1) * max64(1, info.width);
    const uint64_t steps = (uint64_t)((double)REPLAY_BYTES * bench_seconds(bench, 1)) / batch_bytes + 1;
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

static int trace_run(struct bench *bench)
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
    if (!result && tokmap_run_open(&tracing.run, path, NULL, &error))
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
                                      trace_run};
