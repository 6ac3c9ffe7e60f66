/* SPDX-License-Identifier: MIT */
/*
 * case_slice.c - one window at a time, at random places, warm: a view of it, a copy from the mapping, and a copy by
 * pread.
 *
 * The limits are a bare memcpy and a bare pread of windows of the same size. Percentiles are of single calls and
 * include one look at the clock, except for views: a view costs no more than a look at the clock, so views are timed in
 * groups.
 */
#include "cases.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/dataset_make.h"
#include "harness/page_cache.h"
#include "harness/plain_loop.h"
#include "platform/os.h"

#define VIEWS 64           /* views in a group that is timed together */
#define VIEW_UNITS 16      /* a sample of views is in sixteenths of a nanosecond */
#define CALLS_MOST 2000000 /* of one repeat */
#define BUFFERS 8          /* windows are copied to several places in turn */

struct slices {
    struct tokmap_dataset *dataset;
    struct windows windows;
    uint64_t tokens, bytes; /* of one window */
    uint64_t next;          /* index of the next window */
    struct plain_file file; /* for the bare pread */
    uint8_t *into;          /* BUFFERS windows, each aligned to a cache line */
    uint64_t stride;
    struct samples samples;
    struct tokmap_error error;
};

static uint64_t slice_first(struct slices *slices)
{
    return slices->windows.first[windows_next(&slices->windows, &slices->next)];
}

static enum tokmap_status view_repeat(struct slices *slices, uint64_t calls)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; !status && i < calls / VIEWS; i++) {
        uint64_t started = os_clock_ns();
        for (int j = 0; !status && j < VIEWS; j++) {
            struct tokmap_span spans[2];
            size_t used;
            status = tokmap_dataset_view(slices->dataset, slice_first(slices), slices->tokens, spans, 2, &used,
                                         &slices->error);
            keep_value((uint64_t)(uintptr_t)spans[0].tokens);
        }
        samples_add(&slices->samples, (os_clock_ns() - started) * VIEW_UNITS / VIEWS);
    }
    return status;
}

static enum tokmap_status mapped_repeat(struct slices *slices, uint64_t calls)
{
    enum tokmap_status status = TOKMAP_OK;
    uint64_t now = os_clock_ns();
    for (uint64_t i = 0; !status && i < calls; i++) {
        struct tokmap_span spans[2];
        size_t used = 0;
        uint8_t *into = slices->into + i % BUFFERS * slices->stride;
        status =
            tokmap_dataset_view(slices->dataset, slice_first(slices), slices->tokens, spans, 2, &used, &slices->error);
        for (size_t j = 0; j < used; j++) {
            size_t bytes = (size_t)(spans[j].count * slices->windows.width);
            memcpy(into, spans[j].tokens, bytes);
            into += bytes;
        }
        uint64_t then = os_clock_ns();
        samples_add(&slices->samples, then - now);
        now = then;
    }
    return status;
}

static enum tokmap_status mapped_limit_repeat(struct slices *slices, uint64_t calls)
{
    uint64_t now = os_clock_ns();
    for (uint64_t i = 0; i < calls; i++) {
        const uint64_t window = windows_next(&slices->windows, &slices->next);
        memcpy(slices->into + i % BUFFERS * slices->stride, slices->windows.at[window], (size_t)slices->bytes);
        uint64_t then = os_clock_ns();
        samples_add(&slices->samples, then - now);
        now = then;
    }
    return TOKMAP_OK;
}

static enum tokmap_status pread_repeat(struct slices *slices, uint64_t calls)
{
    enum tokmap_status status = TOKMAP_OK;
    uint64_t now = os_clock_ns();
    for (uint64_t i = 0; !status && i < calls; i++) {
        status = tokmap_dataset_copy(slices->dataset, slice_first(slices), slices->tokens,
                                     slices->into + i % BUFFERS * slices->stride, &slices->error);
        uint64_t then = os_clock_ns();
        samples_add(&slices->samples, then - now);
        now = then;
    }
    return status;
}

static enum tokmap_status pread_limit_repeat(struct slices *slices, uint64_t calls)
{
    uint64_t now = os_clock_ns();
    for (uint64_t i = 0; i < calls; i++) {
        plain_file_read(&slices->file, &slices->windows, &slices->next, slices->into + i % BUFFERS * slices->stride);
        uint64_t then = os_clock_ns();
        samples_add(&slices->samples, then - now);
        now = then;
    }
    return TOKMAP_OK;
}

static const struct slice_kind {
    enum tokmap_status (*repeat)(struct slices *slices, uint64_t calls); /* sets slices->error if it fails */
    uint64_t calls;                                                      /* in a repeat of one second */
    double unit_ns;                                                      /* sample units in one unit of the result */
} kinds[] = {
    {view_repeat, CALLS_MOST, VIEW_UNITS}, {mapped_repeat, 200000, 1000},      {mapped_limit_repeat, 200000, 1000},
    {pread_repeat, 100000, 1000},          {pread_limit_repeat, 100000, 1000},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static int slices_open(struct bench *bench, struct slices *slices)
{
    struct tokmap_dataset_info info = {.size = sizeof info};
    struct tokmap_shard_info shard = {.size = sizeof shard};
    int result = dataset_open(bench, TOKMAP_READ_MAPPED, &slices->dataset);
    if (result)
        return result;
    slices->tokens = bench->options.seq_len + 1;
    result = page_cache_warm(bench, slices->dataset); /* before windows_new() populates the mapping */
    if (!result)
        result = dataset_get_info(bench, slices->dataset, &info, &shard);
    if (result)
        return result;
    if (windows_new(&slices->windows, slices->dataset, bench->options.seq_len, (uint64_t)1 << 20, 2, &slices->error))
        return bench_failed(bench, &slices->error);
    slices->bytes = slices->tokens * slices->windows.width;
    slices->stride = round_up(slices->bytes, 64);
    const int system = plain_file_open(&slices->file, &slices->windows, shard.tokens_path, shard.tokens);
    if (system)
        return bench_failed_system(bench, system, shard.tokens_path, "The tokens cannot be opened.");
    slices->into = malloc((size_t)(BUFFERS * slices->stride));
    if (!slices->into || !samples_new(&slices->samples, CALLS_MOST))
        return bench_no_memory(bench);
    memset(slices->into, 1, (size_t)(BUFFERS * slices->stride));
    return CLI_DONE;
}

static void slices_close(struct slices *slices)
{
    samples_free(&slices->samples);
    free(slices->into);
    plain_file_close(&slices->file);
    windows_free(&slices->windows);
    tokmap_dataset_close(slices->dataset);
}

static int run(struct bench *bench)
{
    static struct spread found[KINDS];
    struct slices slices = {.dataset = NULL};
    int result = slices_open(bench, &slices);
    const double seconds = bench_seconds(bench, 0.5);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 7), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats, result))
        for (size_t i = 0; !result && i < KINDS; i++) {
            const uint64_t calls = max64(2 * VIEWS, (uint64_t)((double)kinds[i].calls * seconds));
            samples_clear(&slices.samples);
            if (kinds[i].repeat(&slices, min64(calls, CALLS_MOST)))
                result = bench_failed(bench, &slices.error);
            else if (repeats.counts)
                spread_add(&found[i], &slices.samples, kinds[i].unit_ns);
        }
    slices_close(&slices);
    if (result || bench_stopped())
        return CLI_FAILED;
    bench_spread(bench, "view=", "ns", &found[0], NULL);
    bench_spread(bench, "gather_mapped=", "us", &found[1], &found[2]);
    bench_spread(bench, "gather_pread=", "us", &found[3], &found[4]);
    return CLI_DONE;
}

const struct bench_case case_slice = {"slice",
                                      "single windows at random places: a view, a mapped copy, a copy by pread", run};
