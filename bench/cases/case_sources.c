/* SPDX-License-Identifier: MIT */
/*
 * case_sources.c - loaders of runs that are more than one dataset of shards, each beside the same loader without that:
 * tokens with a mask beside tokens without, eight sources beside one, and another project's file beside the shard that
 * has the same bytes.
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
#include "common/bytes_buffer.h"
#include "harness/bench_data.h"
#include "harness/loops.h"
#include "harness/storage.h"

#define SOURCES 8 /* of the mixture */

enum { MEASURED, LIMIT, SIDES };

/* A run and its loader. */
struct side {
    struct tokmap_run *run;
    struct reader reader;
};

static void side_open(struct bench *bench, struct side *side, const char *sources, bool masks)
{
    struct bytes_buffer text = {0};
    struct tokmap_loader_options options = reader_options(bench, 0, READER_BOTH);
    bench_append(bench, &text, "seq_len %" PRIu64 "\nbatch %" PRIu64 "\n%s", bench->options.seq_len,
                 bench->options.batch, sources);
    options.world = 1; /* all rows of a step */
    options.mask_targets = masks;
    bench_check(bench, tokmap_run_parse(&side->run, (const char *)text.bytes, NULL, &bench->error));
    bytes_free(&text);
    reader_open(bench, &side->reader, side->run, &options);
    const struct tokmap_source_info source = run_get_data(bench, side->run).source;
    page_cache_warm(bench, source.dataset);
    /* The first access to a mapped page costs a fault, so every page is touched once, and the pages are populated. A
     * mixture has parts of one dataset, so one of them warms all. */
    const uint64_t windows = source.windows * (strstr(sources, "part1") ? SOURCES : 1);
    (void)reader_first_pass(bench, &side->reader, windows);
    (void)reader_first_pass(bench, &side->reader, windows);
}

/* Compares two texts of sources, and prints the rate and the ratio under two names. masks: with masked targets. */
static void compare(struct bench *bench, const char *rate, const char *ratio, const char *sources,
                    const char *limit_sources, bool masks)
{
    struct side sides[SIDES] = {{.run = NULL}, {.run = NULL}};
    struct reader *const readers[SIDES] = {&sides[MEASURED].reader, &sides[LIMIT].reader};
    struct series *rates = bench_new(bench, SIDES, sizeof *rates);
    side_open(bench, &sides[LIMIT], limit_sources, masks);
    side_open(bench, &sides[MEASURED], sources, masks);
    readers_compare(bench, readers, repeats_begin(bench, bench_repeats(bench, 9), REPEATS_ALL_COUNT),
                    bench_seconds(bench, 0.3), rates);
    bench_result(bench, rate, "tokens/s", &rates[MEASURED], &rates[LIMIT]);
    bench_derived(bench, ratio, "x", series_median(&rates[MEASURED]) / series_median(&rates[LIMIT]), &rates[MEASURED]);
    free(rates);
    for (int i = 0; i < SIDES; i++) {
        reader_close(&sides[i].reader);
        tokmap_run_close(sides[i].run);
    }
}

/* ---- the texts ---- */

static void one_source(char text[2 * BENCH_PATH], const char *name)
{
    (void)snprintf(text, 2 * BENCH_PATH, "source data \"%s\"\n", name);
}

static void compare_mixture(struct bench *bench, const char *name, uint64_t tokens, const char *plain)
{
    struct bytes_buffer parts = {0};
    for (uint64_t i = 0; i < SOURCES; i++)
        bench_append(bench, &parts, "source part%" PRIu64 " \"%s#tokens=%" PRIu64 "..%" PRIu64 "\"\n", i, name,
                     tokens / SOURCES * i, tokens / SOURCES * (i + 1));
    bench_append(bench, &parts, "phase 0 natural\n");
    compare(bench, "tokens_per_s_mixture", "mixture_ratio", (const char *)parts.bytes, plain, false);
    bytes_free(&parts);
}

static void compare_foreign(struct bench *bench, const struct opened *data, const char *plain)
{
    static char other[2 * BENCH_PATH];
    (void)snprintf(other, sizeof other, "source data \"raw:%s,width=%" PRIu32 ",eod=%" PRIu64 "\"\n",
                   data->first.tokens_path, data->info.width, data->info.vocabulary - 1);
    compare(bench, "tokens_per_s_foreign", "foreign_ratio", other, plain, false);
}

static void compare_mask(struct bench *bench, const char *plain)
{
    static char masked[BENCH_PATH], text[2 * BENCH_PATH];
    if (bench->options.dataset) {
        bench_say(bench, "mask_ratio is left out, since the dataset with a mask has to be made like the one without");
        return;
    }
    dataset_make_masked(bench, masked);
    one_source(text, masked);
    compare(bench, "tokens_per_s_mask", "mask_ratio", text, plain, true);
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
    compare_mask(bench, plain);
    return CLI_DONE;
}

const struct bench_case case_sources = {
    "sources", "loaders of mixtures, masks, and other projects' files, beside windows of one source",
    .run = sources_run};
