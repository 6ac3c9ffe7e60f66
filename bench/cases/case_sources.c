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
#include "common/bytes_buffer.h"
#include "harness/bench_data.h"
#include "harness/child.h"
#include "harness/loops.h"
#include "harness/storage.h"
#include "platform/os.h"

#define SOURCES 8 /* of the mixture */
#define AHEAD 4   /* targets of each input */

enum { MEASURED, LIMIT, SIDES };

/* A run and its loader. */
struct side {
    struct tokmap_run *run;
    struct reader reader;
    void *ahead; /* memory of targets_ahead */
};

struct how {
    uint32_t fields;
    uint32_t mask_targets;
    uint64_t lookahead;
};

/* Returns the options of a loader that delivers all rows of a step. */
static struct tokmap_loader_options whole_options(const struct bench *bench, uint32_t threads, uint32_t fields)
{
    struct tokmap_loader_options options = reader_options(bench, threads, fields);
    options.world = 1;
    return options;
}

static void side_open(struct bench *bench, struct side *side, const char *sources, const struct how *how)
{
    struct bytes_buffer text = {0};
    struct tokmap_loader_options options = whole_options(bench, 0, how->fields);
    bench_append(bench, &text, "seq_len %" PRIu64 "\nlookahead %" PRIu64 "\nbatch %" PRIu64 "\n%s",
                 bench->options.seq_len, how->lookahead, bench->options.batch, sources);
    options.mask_targets = how->mask_targets;
    bench_check(bench, tokmap_run_parse(&side->run, (const char *)text.bytes, NULL, &bench->error));
    bytes_free(&text);
    reader_open(bench, &side->reader, side->run, &options);
    if (how->fields & TOKMAP_TARGETS_AHEAD)
        side->ahead = bench_new(
            bench, tokmap_loader_rows(side->reader.loader) * bench->options.seq_len * how->lookahead, sizeof(uint32_t));
    side->reader.out.targets_ahead = side->ahead;
    const struct tokmap_source_info source = run_get_data(bench, side->run).source;
    page_cache_warm(bench, source.dataset);
    /* The first access to a mapped page costs a fault, so every page is touched once, and the pages are populated. A
     * mixture has parts of one dataset, so one of them warms all. */
    const uint64_t windows = source.windows * (strstr(sources, "part1") ? SOURCES : 1);
    (void)reader_first_pass(bench, &side->reader, windows);
    (void)reader_first_pass(bench, &side->reader, windows);
}

/* Compares two texts of sources, and prints the rate and the ratio under two names. */
static void compare(struct bench *bench, const char *rate, const char *ratio, const char *sources,
                    const struct how *how, const char *limit_sources, const struct how *limit_how)
{
    struct side sides[SIDES] = {{.run = NULL}, {.run = NULL}};
    struct reader *const readers[SIDES] = {&sides[MEASURED].reader, &sides[LIMIT].reader};
    struct series *rates = bench_new(bench, SIDES, sizeof *rates);
    side_open(bench, &sides[LIMIT], limit_sources, limit_how);
    side_open(bench, &sides[MEASURED], sources, how);
    readers_compare(bench, readers, repeats_begin(bench, bench_repeats(bench, 9), REPEATS_ALL_COUNT),
                    bench_seconds(bench, 0.3), rates);
    bench_result(bench, rate, "tokens/s", &rates[MEASURED], &rates[LIMIT]);
    bench_derived(bench, ratio, "x", series_median(&rates[MEASURED]) / series_median(&rates[LIMIT]), &rates[MEASURED]);
    free(rates);
    for (int i = 0; i < SIDES; i++) {
        reader_close(&sides[i].reader);
        tokmap_run_close(sides[i].run);
        free(sides[i].ahead);
    }
}

/* ---- the texts ---- */

static void one_source(char text[2 * BENCH_PATH], const char *name)
{
    (void)snprintf(text, 2 * BENCH_PATH, "source data \"%s\"\n", name);
}

static void compare_mixture(struct bench *bench, const char *name, uint64_t tokens, const char *plain)
{
    const struct how both = {READER_BOTH, 0, 1};
    struct bytes_buffer parts = {0};
    for (uint64_t i = 0; i < SOURCES; i++)
        bench_append(bench, &parts, "source part%" PRIu64 " \"%s#tokens=%" PRIu64 "..%" PRIu64 "\"\n", i, name,
                     tokens / SOURCES * i, tokens / SOURCES * (i + 1));
    bench_append(bench, &parts, "phase 0 natural\n");
    compare(bench, "tokens_per_s_mixture", "mixture_ratio", (const char *)parts.bytes, &both, plain, &both);
    bytes_free(&parts);
}

static void compare_foreign(struct bench *bench, const struct opened *data, const char *plain)
{
    static char other[2 * BENCH_PATH];
    const struct how both = {READER_BOTH, 0, 1};
    (void)snprintf(other, sizeof other, "source data \"raw:%s,width=%" PRIu32 ",eod=%" PRIu64 "\"\n",
                   data->first.tokens_path, data->info.width, data->info.vocabulary - 1);
    compare(bench, "tokens_per_s_foreign", "foreign_ratio", other, &both, plain, &both);
}

static void compare_ahead(struct bench *bench, const char *text)
{
    const struct how one = {READER_BOTH, 0, AHEAD}, ahead = {TOKMAP_INPUTS | TOKMAP_TARGETS_AHEAD, 0, AHEAD};
    compare(bench, "tokens_per_s_ahead", "ahead_ratio", text, &ahead, text, &one);
}

static void compare_mask(struct bench *bench, const char *plain)
{
    static char masked[BENCH_PATH], text[2 * BENCH_PATH];
    const struct how how = {READER_BOTH, 1, 1};
    if (bench->options.dataset) {
        bench_say(bench, "mask_ratio is left out, since the dataset with a mask has to be made like the one without");
        return;
    }
    dataset_make_masked(bench, masked);
    one_source(text, masked);
    compare(bench, "tokens_per_s_mask", "mask_ratio", text, &how, plain, &how);
}

static int sources_run(struct bench *bench)
{
    static char plain[2 * BENCH_PATH];
    const char *name = dataset_name(bench);
    const struct opened data = dataset_open(bench, TOKMAP_READ_MAPPED);
    one_source(plain, name);
    bench->name = "loader";
    compare_mixture(bench, name, data.info.tokens, plain);
    if (data.info.shards == 1)
        compare_foreign(bench, &data, plain);
    tokmap_dataset_close(data.dataset);
    compare_ahead(bench, plain);
    compare_mask(bench, plain);
    return CLI_DONE;
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

#define REPLAY_BYTES ((uint64_t)4 << 30) /* of tokens; with --seconds S, S times as many */

enum { PLAIN, TRACED };

struct tracing {
    struct tokmap_run *run;
    struct reader readers[SIDES];
    struct series found[SIDES];
};

/* trace: the name of the file, or NULL. */
static void traced_open(struct bench *bench, struct tracing *tracing, int side, uint32_t threads, const char *trace)
{
    struct tokmap_loader_options options = whole_options(bench, threads, READER_BOTH);
    options.trace = trace;
    reader_open(bench, &tracing->readers[side], tracing->run, &options);
}

static void open_both(struct bench *bench, struct tracing *tracing, uint32_t threads, const char *label)
{
    char path[BENCH_PATH];
    memset(tracing->found, 0, sizeof tracing->found);
    made_file(bench, label, path);
    traced_open(bench, tracing, PLAIN, threads, NULL);
    traced_open(bench, tracing, TRACED, threads, path);
}

/* Closes the loaders, and writes the result of the traced one and by how many percent it is worse. more: whether more
 * of it is better. */
static void close_both(struct bench *bench, struct tracing *tracing, const char *metric, const char *unit,
                       const char *percent, bool more)
{
    const double plain = series_median(&tracing->found[PLAIN]), traced = series_median(&tracing->found[TRACED]);
    for (int i = 0; i < SIDES; i++)
        reader_close(&tracing->readers[i]);
    bench_result(bench, metric, unit, &tracing->found[TRACED], &tracing->found[PLAIN]);
    bench_derived(bench, percent, "%", 100 * ((more ? plain / traced : traced / plain) - 1), &tracing->found[TRACED]);
}

/* ---- with a producer thread ---- */

/* Adds the nanoseconds of processor time that a call of next() takes while the ring is ahead. */
static void consumer_repeat(struct bench *bench, struct reader *reader, double seconds, struct series *series)
{
    struct tokmap_stats stats;
    uint64_t ns = 0, calls = 0;
    const uint64_t started = os_clock_ns();
    while (!bench_stopped() && (double)(os_clock_ns() - started) / 1e9 < seconds) {
        reader_fill(bench, reader);
        reader_stats(reader, &stats);
        const uint64_t before = os_thread_cpu_ns();
        reader_take(bench, reader, stats.ring_ready);
        calls += stats.ring_ready;
        ns += os_thread_cpu_ns() - before;
    }
    if (calls)
        series_add(series, (double)ns / (double)calls / 1000);
}

static void measure_consumer(struct bench *bench, struct tracing *tracing)
{
    open_both(bench, tracing, 1, "consumer.trace");
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 21), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats))
        for (int i = 0; i < SIDES; i++) {
            struct series unused = {.count = 0};
            consumer_repeat(bench, &tracing->readers[i], bench_seconds(bench, 0.2),
                            repeats.counts ? &tracing->found[i] : &unused);
        }
    close_both(bench, tracing, "next_traced_us", "us", "trace_percent", false);
}

/* ---- inline ---- */

static void measure_inline(struct bench *bench, struct tracing *tracing)
{
    struct reader *const readers[SIDES] = {&tracing->readers[PLAIN], &tracing->readers[TRACED]};
    open_both(bench, tracing, 0, "inline.trace");
    /* The first access to a mapped page costs a fault, so every page is touched before. */
    const uint64_t batches = run_get_data(bench, tracing->run).source.windows / bench->options.rows + 1;
    for (int i = 0; i < SIDES; i++)
        reader_take(bench, readers[i], 2 * batches);
    readers_compare(bench, readers, repeats_begin(bench, bench_repeats(bench, 9), REPEATS_WARM_FIRST),
                    bench_seconds(bench, 0.3), tracing->found);
    close_both(bench, tracing, "tokens_per_s_traced", "tokens/s", "trace_inline_percent", true);
}

/* ---- replaying ---- */

/* Writes the trace of the first steps, and replays it. */
static void measure_replay(struct bench *bench, struct tracing *tracing, const char *run_path)
{
    static struct series rates;
    struct reader *reader = &tracing->readers[TRACED];
    char path[BENCH_PATH];
    made_file(bench, "replay.trace", path);
    traced_open(bench, tracing, TRACED, 1, path);
    const uint64_t width = max64(1, run_get_data(bench, tracing->run).info.width);
    const uint64_t batch_bytes = bench->options.batch * (bench->options.seq_len + 1) * width;
    const uint64_t steps = (uint64_t)((double)REPLAY_BYTES * bench_seconds(bench, 1)) / batch_bytes + 1;
    for (uint64_t done = 0; done < steps; done += reader->batch.last_in_step) {
        reader_take(bench, reader, 1);
        bench_stop_check(bench);
    }
    reader_close(reader);
    const char *const arguments[] = {"replay", run_path, "--trace", path, "--quiet", NULL};
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 5), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats)) {
        struct child_usage usage;
        child_run_tokmap(bench, arguments, &usage);
        repeats_add(&repeats, &rates, (double)(steps * batch_bytes) / 1e9 / usage.seconds);
    }
    bench_result(bench, "replay_gb_s", "GB/s", &rates, NULL);
}

static int trace_run(struct bench *bench)
{
    static struct tracing tracing;
    static char path[BENCH_PATH];
    struct bytes_buffer text = {0};
    const char *name = dataset_name(bench);
    const struct opened data = dataset_open(bench, TOKMAP_READ_PREAD);
    page_cache_warm(bench, data.dataset);
    tokmap_dataset_close(data.dataset);
    /* A run looks for a relative name from its own folder, which is --dir. */
    char *here = NULL;
    const bool relative = *name != '/' && !strchr(name, ':') && !os_real_path(".", &here);
    bench_append(bench, &text, "seq_len %" PRIu64 "\nbatch %" PRIu64 "\nsource data \"%s%s%s\"\n",
                 bench->options.seq_len, bench->options.batch, relative ? here : "", relative ? "/" : "", name);
    free(here);
    bench->name = "loader";
    made_file(bench, "trace.run", path);
    made_write(bench, path, text.bytes, text.count, "The run cannot be written.");
    bytes_free(&text);
    bench_check(bench, tokmap_run_open(&tracing.run, path, NULL, &bench->error));
    measure_consumer(bench, &tracing);
    measure_inline(bench, &tracing);
    measure_replay(bench, &tracing, path);
    tokmap_run_close(tracing.run);
    return CLI_DONE;
}

const struct bench_case case_trace = {"trace", "what a trace costs the consumer and inline, and the rate of replay",
                                      trace_run};
