/* case_slice.c - one window at a time, at random places: a view of it, and copies of it by both ways of reading. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/dataset_make.h"
#include "harness/plain_loop.h"
#include "platform/os.h"

#define VIEWS 64 /* calls between two looks at the clock, which costs as much as a view */

struct slices {
    struct tokmap_dataset *dataset;
    struct windows windows;
    uint64_t tokens, bytes; /* of one window */
    uint64_t next;
    int fd; /* the first shard's tokens: for plain reads of the same size */
    uint64_t file_windows;
    uint8_t *into; /* eight windows, each at its own line */
    uint64_t stride;
    struct samples samples;
    struct tokmap_error error;
};

static uint64_t slice_first(struct slices *slices)
{
    uint64_t first = slices->windows.first[slices->next];
    if (++slices->next == slices->windows.count)
        slices->next = 0;
    return first;
}

static enum tokmap_status turn_view(struct slices *slices, uint64_t calls)
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
        samples_add(&slices->samples, (os_clock_ns() - started) * 16 / VIEWS); /* in sixteenths: a view is short */
    }
    return status;
}

static enum tokmap_status turn_mapped(struct slices *slices, uint64_t calls)
{
    enum tokmap_status status = TOKMAP_OK;
    uint64_t now = os_clock_ns();
    for (uint64_t i = 0; !status && i < calls; i++) {
        struct tokmap_span spans[2];
        size_t used = 0;
        uint8_t *into = slices->into + i % 8 * slices->stride;
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

static enum tokmap_status turn_mapped_limit(struct slices *slices, uint64_t calls)
{
    uint64_t now = os_clock_ns();
    for (uint64_t i = 0; i < calls; i++) {
        memcpy(slices->into + i % 8 * slices->stride, slices->windows.at[slices->next], (size_t)slices->bytes);
        if (++slices->next == slices->windows.count)
            slices->next = 0;
        uint64_t then = os_clock_ns();
        samples_add(&slices->samples, then - now);
        now = then;
    }
    return TOKMAP_OK;
}

static enum tokmap_status turn_pread(struct slices *slices, uint64_t calls)
{
    enum tokmap_status status = TOKMAP_OK;
    uint64_t now = os_clock_ns();
    for (uint64_t i = 0; !status && i < calls; i++) {
        status = tokmap_dataset_copy(slices->dataset, slice_first(slices), slices->tokens,
                                     slices->into + i % 8 * slices->stride, &slices->error);
        uint64_t then = os_clock_ns();
        samples_add(&slices->samples, then - now);
        now = then;
    }
    return status;
}

static enum tokmap_status turn_pread_limit(struct slices *slices, uint64_t calls)
{
    uint64_t now = os_clock_ns();
    for (uint64_t i = 0; i < calls; i++) {
        size_t got = 0;
        uint64_t first = slice_first(slices) / slices->windows.seq_len % slices->file_windows;
        (void)os_pread(slices->fd, slices->into + i % 8 * slices->stride, (size_t)slices->bytes,
                       first * slices->windows.seq_len * slices->windows.width, &got);
        uint64_t then = os_clock_ns();
        samples_add(&slices->samples, then - now);
        now = then;
    }
    return TOKMAP_OK;
}

static const struct slice_kind {
    enum tokmap_status (*turn)(struct slices *slices, uint64_t calls); /* a failure is in slices->error */
    uint64_t calls;                                                    /* of a turn of one second */
    double unit_ns;                                                    /* of a sample's unit in the result's */
} kinds[] = {
    {turn_view, 2000000, 16},   {turn_mapped, 200000, 1000},      {turn_mapped_limit, 200000, 1000},
    {turn_pread, 100000, 1000}, {turn_pread_limit, 100000, 1000},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static int slices_open(struct bench *bench, struct slices *slices)
{
    struct tokmap_shard_info shard = {.size = sizeof shard};
    int result = dataset_open(bench, TOKMAP_READ_MAPPED, &slices->dataset);
    if (result)
        return result;
    slices->tokens = bench->options.seq_len + 1;
    result = dataset_warm(bench, slices->dataset); /* before anything is mapped, so that it can be dropped */
    if (result)
        return result;
    if (tokmap_dataset_shard(slices->dataset, 0, &shard, &slices->error) ||
        windows_new(&slices->windows, slices->dataset, bench->options.seq_len, (uint64_t)1 << 20, 2, &slices->error))
        return bench_failed(bench, &slices->error);
    slices->bytes = slices->tokens * slices->windows.width;
    slices->stride = round_up(slices->bytes, 64);
    slices->file_windows = max64(1, (shard.tokens - min64(1, shard.tokens)) / bench->options.seq_len);
    int system = os_open(shard.tokens_path, OS_READ, &slices->fd);
    if (system)
        return bench_failed_system(bench, system, shard.tokens_path, "The tokens cannot be opened.");
    slices->into = malloc((size_t)(8 * slices->stride));
    if (!slices->into || !samples_new(&slices->samples, (size_t)2000000))
        return bench_no_memory(bench);
    memset(slices->into, 1, (size_t)(8 * slices->stride));
    return CLI_DONE;
}

static void slices_close(struct slices *slices)
{
    samples_free(&slices->samples);
    free(slices->into);
    if (slices->fd >= 0)
        os_close(slices->fd);
    windows_free(&slices->windows);
    tokmap_dataset_close(slices->dataset);
}

static int run(struct bench *bench)
{
    static struct spread found[KINDS];
    struct slices slices = {.fd = -1};
    int result = slices_open(bench, &slices);
    double seconds = bench_seconds(bench, 0.5);
    for (uint64_t turn = 0; !result && turn <= bench_repeats(bench, 7) && !bench_stopped(); turn++)
        for (size_t i = 0; !result && i < KINDS; i++) {
            uint64_t calls = max64(2 * VIEWS, (uint64_t)((double)kinds[i].calls * seconds));
            samples_clear(&slices.samples);
            if (kinds[i].turn(&slices, min64(calls, 2000000)))
                result = bench_failed(bench, &slices.error);
            else if (turn) /* the first warms */
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

const struct bench_case case_slice = {"slice", "one window at a random place: a view, a mapped copy, a copy by pread",
                                      run};
