/* SPDX-License-Identifier: MIT */
/*
 * case_sources.c - loaders of runs that are more than one dataset of shards, each beside the same loader without that:
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
#include "harness/dataset_make.h"
#include "harness/page_cache.h"
#include "harness/reader.h"

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
    struct tokmap_source_info source = {.size = sizeof source};
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
    if (outputs_new(&side->reader.outputs, rows, bench->options.seq_len, TOKMAP_I32))
        return bench_no_memory(bench);
    if (how->fields & TOKMAP_TARGETS_AHEAD)
        side->ahead = calloc((size_t)(rows * bench->options.seq_len * how->lookahead), 4);
    if ((how->fields & TOKMAP_TARGETS_AHEAD) && !side->ahead)
        return bench_no_memory(bench);
    side->reader.out.inputs = side->reader.outputs.inputs;
    side->reader.out.targets = side->reader.outputs.targets;
    side->reader.out.targets_ahead = side->ahead;
    side->reader.out.type = TOKMAP_I32;
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
        result = reader_repeat(bench, &pair->limit.reader, TOKMAP_I32, seconds, NULL, &found, NULL);
        series_add(&pair->limit.rates, found);
        if (!result)
            result = reader_repeat(bench, &pair->measured.reader, TOKMAP_I32, seconds, NULL, &found, NULL);
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

/* The same tokens as a mixture of eight parts. */
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

static int run(struct bench *bench)
{
    static char plain[2 * BENCH_PATH], other[2 * BENCH_PATH], parts[SOURCES * BENCH_PATH];
    const struct how both = {BOTH, 0, 1};
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_dataset_info info = {.size = sizeof info};
    struct tokmap_shard_info shard = {.size = sizeof shard};
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
    run};
