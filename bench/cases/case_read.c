/* SPDX-License-Identifier: MIT */
/*
 * case_read.c - the cases `limits`, `slice`, and `verify`: reading a dataset without a loader.
 *
 * `limits` is what this machine can do at best: memory copies, reads from the page cache and from storage, the clock,
 * and the plain loop that gathers windows and widens their tokens. Other cases are compared with these figures.
 */
#include "cases.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/bench_data.h"
#include "harness/loops.h"
#include "harness/storage.h"
#include "platform/os.h"

#define CACHE_BYTES_MOST ((uint64_t)1 << 30) /* bytes of a file that one repeat reads from the page cache */

/* ---- memory ---- */

static const struct memory_size {
    const char *metric;
    uint64_t bytes; /* of the source, and of the destination */
} memory_sizes[] = {
    {"memcpy_l1_gb_s", 12 << 10},
    {"memcpy_l2_gb_s", 256 << 10},
    {"memcpy_l3_gb_s", 4 << 20},
    {"memcpy_ram_gb_s", 256 << 20},
};

static double copy_repeat(void *into, const void *from, uint64_t bytes, double seconds)
{
    uint64_t length = (uint64_t)(seconds * 1e9), copied = 0;
    uint64_t burst = max64(1, (4 << 20) / bytes), started = os_clock_ns(), now = started;
    while (now - started < length) {
        for (uint64_t i = 0; i < burst; i++) {
            memcpy(into, from, (size_t)bytes);
            keep_value((uint64_t)(uintptr_t)into);
        }
        copied += burst * bytes;
        now = os_clock_ns();
    }
    return (double)copied / (double)(now - started);
}

static void measure_memory(struct bench *bench)
{
    static struct series found[sizeof memory_sizes / sizeof memory_sizes[0]];
    const size_t sizes = sizeof memory_sizes / sizeof memory_sizes[0];
    const uint64_t most = memory_sizes[sizes - 1].bytes;
    void *from = NULL, *into = NULL;
    if (os_memory_new(most, true, &from) || os_memory_new(most, true, &into))
        bench_no_memory(bench);
    memset(from, 1, (size_t)most);
    memset(into, 2, (size_t)most);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 7), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats))
        for (size_t i = 0; i < sizes; i++)
            series_add(&found[i], copy_repeat(into, from, memory_sizes[i].bytes, bench_seconds(bench, 0.1)));
    os_memory_free(from, most);
    os_memory_free(into, most);
    for (size_t i = 0; i < sizes; i++)
        bench_result(bench, memory_sizes[i].metric, "GB/s", &found[i], NULL);
}

/* ---- clock ---- */

static void measure_clock(struct bench *bench)
{
    struct series found = {.count = 0};
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 7), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats)) {
        const uint64_t started = os_clock_ns();
        for (int i = 0; i < 100000; i++)
            keep_value(os_clock_ns());
        series_add(&found, (double)(os_clock_ns() - started) / 100000);
    }
    bench_result(bench, "clock_ns", "ns", &found, NULL);
}

/* ---- reading from the page cache ---- */

static double cache_repeat(struct bench *bench, const char *path, uint64_t bytes)
{
    static char buffer[1 << 20];
    int fd;
    uint64_t at = 0;
    size_t got = 1;
    int system = os_open(path, OS_READ, &fd);
    bench_check_system(bench, system, path, "The tokens cannot be read.");
    uint64_t started = os_clock_ns();
    while (!system && at < bytes && got) {
        system = os_pread(fd, buffer, sizeof buffer, at, &got);
        at += got;
    }
    const double rate = (double)at / (double)(os_clock_ns() - started);
    os_close(fd);
    bench_check_system(bench, system, path, "The tokens cannot be read.");
    return rate;
}

static void measure_cache(struct bench *bench, const char *path, uint64_t bytes)
{
    struct series found = {.count = 0};
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 7), REPEATS_WARM_FIRST); /* fills the cache */
    while (repeats_next(&repeats))
        repeats_add(&repeats, &found, cache_repeat(bench, path, min64(bytes, CACHE_BYTES_MOST)));
    bench_result(bench, "page_cache_read_gb_s", "GB/s", &found, NULL);
}

/* ---- reading from storage ---- */

/* Reads two pages at each of `reads` random places: what a window of 2,048 two-byte tokens and its last target needs.
 */
static double direct_repeat(struct bench *bench, struct direct_pool *pool, const char *path, uint64_t bytes,
                            uint64_t reads, uint64_t *state)
{
    const uint64_t page = os_page_bytes(), places = bytes / page - 1;
    struct byte_range *ranges = bench_new(bench, reads, sizeof *ranges);
    double seconds = 0;
    for (uint64_t i = 0; i < reads; i++)
        ranges[i] = (struct byte_range){random_below(state, places) * page, 2 * page};
    bench_check_system(bench, direct_pool_read(pool, ranges, reads, &seconds), path,
                       "The tokens cannot be read with O_DIRECT.");
    free(ranges);
    return (double)reads / seconds;
}

static void measure_storage(struct bench *bench, const char *path, uint64_t bytes)
{
    static const struct {
        const char *metric;
        uint32_t depth;
        double share; /* of the reads of a repeat: a single thread is slower */
    } depths[] = {{"cold_read_8k_qd1_per_s", 1, 0.1}, {"cold_read_8k_qd64_per_s", 64, 1}};
    static struct series found[2];
    struct direct_pool *pools[2] = {NULL, NULL};
    uint64_t state = os_clock_ns(), reads = (uint64_t)(bench_seconds(bench, 0.5) * 64000) + 1;
    int system = bytes < 4 * os_page_bytes() ? EINVAL : 0;
    for (size_t i = 0; !system && i < 2; i++)
        system = direct_pool_new(&pools[i], path, depths[i].depth);
    if (system == EINVAL) {
        bench_say(bench,
                  "cold reads are not measured: the file system does not support O_DIRECT, or the file is too small");
        return;
    }
    bench_check_system(bench, system, path, "The tokens cannot be read with O_DIRECT.");
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 7), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats))
        for (size_t i = 0; i < 2; i++)
            series_add(&found[i], direct_repeat(bench, pools[i], path, bytes,
                                                (uint64_t)((double)reads * depths[i].share) + 1, &state));
    for (size_t i = 0; i < 2; i++) {
        direct_pool_free(pools[i]);
        bench_result(bench, depths[i].metric, "reads/s", &found[i], NULL);
    }
}

/* ---- the plain loop ---- */

static void measure_loop(struct bench *bench, const struct tokmap_dataset *dataset)
{
    static const struct {
        const char *metric;
        enum tokmap_id_type type;
        bool with_targets, widest;
    } forms[] = {
        {"gather_widen_i32_tokens_per_s", TOKMAP_ID_I32, true, false},
        {"gather_widen_i64_tokens_per_s", TOKMAP_ID_I64, true, false},
        {"gather_widen_i32_inputs_alone_tokens_per_s", TOKMAP_ID_I32, false, false},
        {"gather_widen_i64_inputs_alone_tokens_per_s", TOKMAP_ID_I64, false, false},
        {"gather_widen_i32_widest_vectors_tokens_per_s", TOKMAP_ID_I32, true, true},
        {"gather_widen_i64_widest_vectors_tokens_per_s", TOKMAP_ID_I64, true, true},
    };
    enum { FORMS = sizeof forms / sizeof forms[0] };
    static struct series found[FORMS];
    struct windows windows;
    struct outputs outputs;
    uint64_t next = 0;
    windows_new(bench, &windows, dataset, READER_WINDOWS_MOST, 1);
    outputs_new(bench, &outputs, bench->options.rows, TOKMAP_ID_I64);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 7), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats))
        for (size_t i = 0; i < FORMS; i++) {
            const struct plain_loop loop = {.widen = forms[i].widest ? plain_widen_widest() : plain_widen_base,
                                            .windows = &windows,
                                            .outputs = &outputs,
                                            .rows = bench->options.rows,
                                            .type = forms[i].type,
                                            .with_targets = forms[i].with_targets};
            repeats_add(&repeats, &found[i], plain_loop_repeat(&loop, &next, bench_seconds(bench, 0.3), NULL));
        }
    outputs_free(&outputs);
    windows_free(&windows);
    for (size_t i = 0; i < FORMS; i++)
        bench_result(bench, forms[i].metric, "tokens/s", &found[i], NULL);
}

static int limits_run(struct bench *bench)
{
    const struct opened data = dataset_open(bench, TOKMAP_READ_MAPPED);
    const uint64_t bytes = data.first.tokens * data.info.width;
    measure_clock(bench);
    page_cache_warm(bench, data.dataset);
    measure_memory(bench);
    measure_cache(bench, data.first.tokens_path, bytes);
    measure_loop(bench, data.dataset);
    measure_storage(bench, data.first.tokens_path, bytes);
    tokmap_dataset_close(data.dataset);
    return CLI_DONE;
}

const struct bench_case case_limits = {
    "limits", "memory copies, cached and cold reads, the plain gather-and-widen loop", limits_run};

/* ==== the case `slice` ==== */

/*
 * One window at a time, at random places, warm: a view of it, a copy from the mapping, and a copy by pread.
 *
 * The limits are a bare memcpy and a bare pread of windows of the same size. Percentiles are of single calls and
 * include one look at the clock, except for views: a view costs no more than a look at the clock, so views are timed in
 * groups.
 */

#define VIEWS 64           /* views in a group that is timed together */
#define VIEW_UNITS 16      /* a sample of views is in sixteenths of a nanosecond */
#define CALLS_MOST 2000000 /* of one repeat */
#define BUFFERS 8          /* windows are copied to several places in turn */

struct slices {
    struct opened data;
    struct windows windows;
    uint64_t tokens, bytes; /* of one window */
    uint64_t next;          /* index of the next window */
    struct plain_file file; /* for the bare pread */
    uint8_t *into;          /* BUFFERS windows, each aligned to a cache line */
    uint64_t stride;
    struct samples samples;
    struct tokmap_error *error;
};

static uint64_t slice_first(struct slices *slices)
{
    return slices->windows.first[windows_next(&slices->windows, &slices->next)];
}

static enum tokmap_status view(struct slices *slices, struct tokmap_span spans[2], size_t *used)
{
    return tokmap_dataset_view(slices->data.dataset, slice_first(slices), slices->tokens, spans, 2, used,
                               slices->error);
}

static void view_repeat(struct bench *bench, struct slices *slices, uint64_t calls)
{
    for (uint64_t i = 0; i < calls / VIEWS; i++) {
        uint64_t started = os_clock_ns();
        for (int j = 0; j < VIEWS; j++) {
            struct tokmap_span spans[2];
            size_t used;
            bench_check(bench, view(slices, spans, &used));
            keep_value((uint64_t)(uintptr_t)spans[0].tokens);
        }
        samples_add(&slices->samples, (os_clock_ns() - started) * VIEW_UNITS / VIEWS);
    }
}

static enum tokmap_status mapped_copy(struct slices *slices, uint8_t *into)
{
    struct tokmap_span spans[2];
    size_t used = 0;
    const enum tokmap_status status = view(slices, spans, &used);
    for (size_t j = 0; j < used; j++) {
        size_t bytes = (size_t)(spans[j].count * slices->windows.width);
        memcpy(into, spans[j].tokens, bytes);
        into += bytes;
    }
    return status;
}

static enum tokmap_status mapped_limit(struct slices *slices, uint8_t *into)
{
    memcpy(into, slices->windows.at[windows_next(&slices->windows, &slices->next)], (size_t)slices->bytes);
    return TOKMAP_OK;
}

static enum tokmap_status pread_copy(struct slices *slices, uint8_t *into)
{
    return tokmap_dataset_copy(slices->data.dataset, slice_first(slices), slices->tokens, into, slices->error);
}

static enum tokmap_status pread_limit(struct slices *slices, uint8_t *into)
{
    plain_file_read(&slices->file, &slices->windows, &slices->next, into);
    return TOKMAP_OK;
}

static const struct slice_kind {
    enum tokmap_status (*copy)(struct slices *slices, uint8_t *into); /* NULL: views */
    uint64_t calls;                                                   /* in a repeat of one second */
    double unit_ns;                                                   /* sample units in one unit of the result */
} kinds[] = {
    {NULL, CALLS_MOST, VIEW_UNITS}, {mapped_copy, 200000, 1000}, {mapped_limit, 200000, 1000},
    {pread_copy, 100000, 1000},     {pread_limit, 100000, 1000},
};

#define KINDS (sizeof kinds / sizeof kinds[0])

static void copies_repeat(struct bench *bench, struct slices *slices, const struct slice_kind *kind, uint64_t calls)
{
    uint64_t now = os_clock_ns();
    for (uint64_t i = 0; i < calls; i++) {
        bench_check(bench, kind->copy(slices, slices->into + i % BUFFERS * slices->stride));
        uint64_t then = os_clock_ns();
        samples_add(&slices->samples, then - now);
        now = then;
    }
}

static void slices_open(struct bench *bench, struct slices *slices)
{
    slices->data = dataset_open(bench, TOKMAP_READ_MAPPED);
    slices->error = &bench->error;
    slices->tokens = bench->options.seq_len + 1;
    page_cache_warm(bench, slices->data.dataset); /* before windows_new() populates the mapping */
    windows_new(bench, &slices->windows, slices->data.dataset, READER_WINDOWS_MOST, 2);
    slices->bytes = slices->tokens * slices->windows.width;
    slices->stride = round_up(slices->bytes, 64);
    plain_file_open(bench, &slices->file, &slices->windows, &slices->data.first);
    slices->into = bench_new(bench, BUFFERS, (size_t)slices->stride);
    bench_samples_new(bench, &slices->samples, CALLS_MOST);
    memset(slices->into, 1, (size_t)(BUFFERS * slices->stride));
}

static void slices_close(struct slices *slices)
{
    samples_free(&slices->samples);
    free(slices->into);
    plain_file_close(&slices->file);
    windows_free(&slices->windows);
    tokmap_dataset_close(slices->data.dataset);
}

static int slice_run(struct bench *bench)
{
    static struct spread found[KINDS];
    struct slices slices = {.next = 0};
    slices_open(bench, &slices);
    const double seconds = bench_seconds(bench, 0.5);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 7), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats))
        for (size_t i = 0; i < KINDS; i++) {
            const uint64_t calls = max64(2 * VIEWS, (uint64_t)((double)kinds[i].calls * seconds));
            samples_clear(&slices.samples);
            if (kinds[i].copy)
                copies_repeat(bench, &slices, &kinds[i], min64(calls, CALLS_MOST));
            else
                view_repeat(bench, &slices, min64(calls, CALLS_MOST));
            if (repeats.counts)
                spread_add(&found[i], &slices.samples, kinds[i].unit_ns);
        }
    slices_close(&slices);
    bench_spread(bench, "view=", "ns", &found[0], NULL);
    bench_spread(bench, "gather_mapped=", "us", &found[1], &found[2]);
    bench_spread(bench, "gather_pread=", "us", &found[3], &found[4]);
    return CLI_DONE;
}

const struct bench_case case_slice = {
    "slice", "single windows at random places: a view, a mapped copy, a copy by pread", slice_run};

/* ==== the case `verify` ==== */

/*
 * The rate of verification, which reads and hashes every byte. The limit is the rate of reading every byte from the
 * page cache with the same number of threads.
 */

#define THREADS_MOST 64

/* Pages that one thread of the limit reads. */
struct share {
    int fd;
    uint64_t from, to; /* bytes of the file */
    int system;        /* result: 0 or an errno */
};

static void range_read(void *user)
{
    struct share *share = user;
    void *buffer = NULL;
    const size_t bytes = 1 << 20;
    size_t got = 1;
    share->system = os_memory_new(bytes, false, &buffer);
    while (!share->system && share->from < share->to && got) {
        share->system = os_pread(share->fd, buffer, (size_t)min64(bytes, share->to - share->from), share->from, &got);
        share->from += got;
    }
    os_memory_free(buffer, bytes);
}

static double read_repeat(struct bench *bench, const struct opened *data, uint32_t threads)
{
    struct share shares[THREADS_MOST];
    struct os_thread *running[THREADS_MOST] = {NULL};
    const char *path = data->first.tokens_path;
    const uint64_t bytes = data->first.tokens * data->info.width;
    int fd, failed = 0;
    bench_check_system(bench, os_open(path, OS_READ, &fd), path, "The tokens cannot be opened.");
    const uint64_t started = os_clock_ns();
    for (uint32_t i = 0; i < threads; i++) {
        shares[i] = (struct share){fd, mul_div(bytes, i, threads), mul_div(bytes, i + 1, threads), 0};
        if (i + 1 == threads || os_thread_start(&running[i], "read", range_read, &shares[i]))
            range_read(&shares[i]); /* the last share, and any whose thread cannot be started, on this thread */
    }
    for (uint32_t i = 0; i < threads; i++) {
        os_thread_join(running[i]);
        failed = shares[i].system ? shares[i].system : failed;
    }
    const double rate = (double)bytes / (double)(os_clock_ns() - started);
    os_close(fd);
    bench_check_system(bench, failed, path, "The tokens cannot be read.");
    return rate;
}

static double verify_repeat(struct bench *bench, const struct tokmap_dataset *dataset, uint32_t threads)
{
    struct tokmap_verify_options options = TOKMAP_VERIFY_OPTIONS_INIT;
    struct tokmap_verify_result result = TOKMAP_VERIFY_RESULT_INIT;
    options.threads = threads;
    const uint64_t started = os_clock_ns();
    bench_check(bench, tokmap_dataset_verify(dataset, &options, &result, &bench->error));
    return (double)result.bytes / (double)(os_clock_ns() - started);
}

static int verify_run(struct bench *bench)
{
    static struct series found, limit;
    const uint32_t threads = (uint32_t)max64(1, min64(bench->options.threads, THREADS_MOST));
    const struct opened data = dataset_open(bench, TOKMAP_READ_AUTO); /* as the command tokmap opens it */
    page_cache_warm(bench, data.dataset);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 7), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats)) {
        repeats_add(&repeats, &found, verify_repeat(bench, data.dataset, threads));
        repeats_add(&repeats, &limit, read_repeat(bench, &data, threads));
    }
    tokmap_dataset_close(data.dataset);
    bench_result(bench, "gb_s", "GB/s", &found, &limit);
    return CLI_DONE;
}

const struct bench_case case_verify = {
    "verify", "reading and hashing every byte, beside the bandwidth of the page cache", verify_run};
