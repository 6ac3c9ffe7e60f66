/* SPDX-License-Identifier: MIT */
/*
 * case_h2d.c - the rate at which the GPU's copy engine copies from the host, by size of the copy and kind of memory.
 *
 * Pinned memory is allocated by the driver (cuMemHostAlloc). Registered memory is a mapping of this process that was
 * registered with the driver, as the loader's ring is: with huge pages of 2 MiB, as a ring of at least 2 MiB has, and
 * with small pages, as a smaller ring has. Pageable memory is what a program without pinned buffers copies from. The
 * best rate of pinned memory over all sizes is the peak, which is the limit of the rates. One repeat enqueues copies of
 * 64 MiB in total, but at most 256 copies, between two events.
 *
 * The loader should lose nothing against a plain copy of the same size. So for each size, the rate from the ring's kind
 * of memory is divided by the rate from the best other pinned memory in the same repeat. The result is the geometric
 * mean over the sizes. The worst size is reported, too, but is no measure of the memory: small copies take a few
 * microseconds, so the smallest of many shares is below 1 by noise alone.
 */
#include "cases.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/gpu.h"
#include "platform/os.h"

#define SMALLEST ((uint64_t)4 << 10) /* bytes of the smallest copy; each size is four times the one before */
#define SIZES_MOST 24
#define REPEAT_BYTES                                                                                                   \
    ((uint64_t)64 << 20) /* bytes that one repeat copies, unless that takes more than COPIES_MOST copies */
#define COPIES_MOST 256
#define RING_LEAST ((uint64_t)16 << 20) /* ring_memory_gb_s is the worst rate of copies of this size or larger */

enum { PINNED, REGISTERED, SMALL_PAGES, PAGEABLE, KINDS };
static const char *const kind_names[KINDS] = {"pinned", "registered", "registered_small", "pageable"};

struct h2d {
    struct gpu gpu;
    struct gpu_timer timer;
    void *memory[KINDS];
    bool registered[KINDS]; /* the driver accepted the registration */
    double register_ms[KINDS];
    uint64_t into;  /* device address */
    uint64_t bytes; /* of each buffer: the largest copy */
    uint64_t sizes[SIZES_MOST];
    size_t size_count;
    struct series rates[KINDS][SIZES_MOST]; /* GB/s */
};

/* Registration fails in some virtual machines. The loader then uses memory of the driver, and there is nothing to
 * measure. */
static void h2d_register(struct h2d *h2d, int kind)
{
    const uint64_t started = os_clock_ns();
    h2d->registered[kind] = !h2d->gpu.driver->host_register(h2d->memory[kind], h2d->bytes, CUDA_HOST_PORTABLE);
    h2d->register_ms[kind] = (double)(os_clock_ns() - started) / 1e6;
}

static int h2d_open(struct bench *bench, struct h2d *h2d)
{
    int result = gpu_open(bench, &h2d->gpu);
    if (!result)
        result = gpu_timer_new(&h2d->gpu, &h2d->timer);
    if (!result)
        result = gpu_memory_new(&h2d->gpu, h2d->bytes, &h2d->into);
    if (!result)
        result = gpu_check(&h2d->gpu, h2d->gpu.driver->host_alloc(&h2d->memory[PINNED], h2d->bytes, CUDA_HOST_PORTABLE),
                           "allocating page-locked memory");
    for (int kind = REGISTERED; kind < KINDS && !result; kind++) {
        int system = os_memory_new(h2d->bytes, kind != SMALL_PAGES, &h2d->memory[kind]);
        if (system)
            return bench_failed_system(bench, system, NULL,
                                       "There is not enough memory for the copies; lower --copy-bytes.");
    }
    if (result)
        return result;
    os_memory_small_pages(h2d->memory[SMALL_PAGES], h2d->bytes);
    for (int kind = REGISTERED; kind <= SMALL_PAGES; kind++)
        os_memory_prefer_node(h2d->memory[kind], h2d->bytes, cuda_device_node(&h2d->gpu.device));
    for (int kind = 0; kind < KINDS; kind++)
        memset(h2d->memory[kind], kind + 1, h2d->bytes);
    for (int kind = REGISTERED; kind <= SMALL_PAGES; kind++)
        h2d_register(h2d, kind);
    return gpu_synchronize(&h2d->gpu);
}

static void h2d_close(struct h2d *h2d)
{
    if (!h2d->gpu.open)
        return;
    (void)h2d->gpu.driver->stream_synchronize(h2d->gpu.stream);
    for (int kind = REGISTERED; kind <= SMALL_PAGES; kind++)
        if (h2d->registered[kind])
            (void)h2d->gpu.driver->host_unregister(h2d->memory[kind]);
    if (h2d->memory[PINNED])
        (void)h2d->gpu.driver->host_free(h2d->memory[PINNED]);
    for (int kind = REGISTERED; kind < KINDS; kind++)
        os_memory_free(h2d->memory[kind], h2d->bytes);
    gpu_memory_free(&h2d->gpu, &h2d->into);
    gpu_timer_free(&h2d->gpu, &h2d->timer);
    gpu_close(&h2d->gpu);
}

static int h2d_repeat(struct h2d *h2d, int kind, size_t which, bool counts)
{
    struct gpu *gpu = &h2d->gpu;
    const uint64_t size = h2d->sizes[which], copies = max64(1, min64(REPEAT_BYTES / size, COPIES_MOST));
    const uint64_t places = h2d->bytes / size;
    double ms = 0;
    int result = gpu_timer_start(gpu, &h2d->timer);
    for (uint64_t i = 0; i < copies && !result; i++) {
        const uint64_t at = i % places * size;
        result = gpu->driver->copy_to_device(h2d->into + at, (uint8_t *)h2d->memory[kind] + at, size, gpu->stream);
    }
    if (!result)
        result = gpu_timer_stop(gpu, &h2d->timer);
    if (result)
        return gpu_check(gpu, result, "copying to the GPU");
    result = gpu_timer_read(gpu, &h2d->timer, &ms);
    if (!result && counts && ms > 0)
        series_add(&h2d->rates[kind][which], (double)(copies * size) / ms / 1e6);
    return result;
}

/* Sets *shares to rates[i] / of[i] for each repeat. */
static void divide(const struct series *rates, const struct series *of, struct series *shares)
{
    shares->count = 0;
    for (size_t i = 0; i < rates->count && i < of->count; i++)
        series_add(shares, rates->values[i] / of->values[i]);
}

/* Reports the rate of one kind of memory as a share of the best one of others (the second of which may be the same as
 * the first) in the same repeats: the mean over the sizes, and the worst size under a second name. */
static void report_share(struct bench *bench, const struct h2d *h2d, const char *metric, const char *worst_metric,
                         int kind, const int others[2])
{
    struct series shares, worst = {.count = 0}, mean = {.count = 0};
    double logs[SERIES_MOST] = {0};
    for (size_t i = 0; i < h2d->size_count && h2d->registered[kind]; i++) {
        const struct series *const of[2] = {&h2d->rates[others[0]][i], &h2d->rates[others[1]][i]};
        divide(&h2d->rates[kind][i], of[series_median(of[1]) > series_median(of[0])], &shares);
        if (!worst.count || series_median(&shares) < series_median(&worst))
            worst = shares;
        for (size_t repeat = 0; repeat < shares.count; repeat++)
            logs[repeat] += log(shares.values[repeat]);
    }
    for (size_t repeat = 0; repeat < worst.count; repeat++)
        series_add(&mean, exp(logs[repeat] / (double)h2d->size_count));
    bench_result(bench, metric, "share", &mean, NULL);
    bench_result(bench, worst_metric, "share", &worst, NULL);
}

static void report(struct bench *bench, const struct h2d *h2d)
{
    const struct series *peak = &h2d->rates[PINNED][0];
    double worst = 1e300;
    for (size_t i = 1; i < h2d->size_count; i++)
        if (series_median(&h2d->rates[PINNED][i]) > series_median(peak))
            peak = &h2d->rates[PINNED][i];
    bench_result(bench, "peak_gb_s", "GB/s", peak, NULL);
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < h2d->size_count; i++) {
            const struct series *rates = &h2d->rates[kind][i];
            char metric[64];
            const uint64_t kib = h2d->sizes[i] >> 10;
            (void)snprintf(metric, sizeof metric, "%s_gb_s_%llu%s", kind_names[kind],
                           (unsigned long long)(kib >= 1024 ? kib >> 10 : kib), kib >= 1024 ? "mib" : "kib");
            bench_result(bench, metric, "GB/s", rates, peak);
            if (kind == REGISTERED && h2d->sizes[i] >= RING_LEAST && rates->count)
                worst = series_median(rates) < worst ? series_median(rates) : worst;
        }
    if (worst < 1e300)
        bench_value(bench, "ring_memory_gb_s", "GB/s", worst, series_median(peak));
    report_share(bench, h2d, "same_size_share", "same_size_worst_share", REGISTERED,
                 (const int[]){PINNED, SMALL_PAGES});
    report_share(bench, h2d, "small_pages_share", "small_pages_worst_share", SMALL_PAGES,
                 (const int[]){REGISTERED, REGISTERED});
    if (h2d->registered[REGISTERED] && h2d->registered[SMALL_PAGES])
        bench_value(bench, "register_ms", "ms", h2d->register_ms[REGISTERED], h2d->register_ms[SMALL_PAGES]);
}

static int run(struct bench *bench)
{
    static struct h2d h2d;
    for (uint64_t size = SMALLEST; size <= bench->options.copy_bytes && h2d.size_count < SIZES_MOST; size *= 4) {
        h2d.sizes[h2d.size_count++] = size;
        h2d.bytes = size;
    }
    int result = h2d_open(bench, &h2d);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 9), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats, result))
        for (size_t which = 0; which < h2d.size_count && !result; which++)
            for (int kind = 0; kind < KINDS && !result; kind++)
                if (kind == PINNED || kind == PAGEABLE || h2d.registered[kind])
                    result = h2d_repeat(&h2d, kind, which, repeats.counts);
    h2d_close(&h2d);
    if (result || bench_stopped())
        return CLI_FAILED;
    report(bench, &h2d);
    return CLI_DONE;
}

const struct bench_case case_h2d = {"h2d",
                                    "copies from host to GPU by size and kind of memory, beside the best of them", run};
