/* SPDX-License-Identifier: MIT */
/*
 * case_device.c - the cases `h2d` and `expand`, which are what bounds delivery to a GPU, and `race`, which checks it.
 *
 * `h2d` is the rate at which the GPU's copy engine copies from the host, by size of the copy and kind of memory.
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

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/mark.h"
#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/bench_data.h"
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

static void h2d_open(struct bench *bench, struct h2d *h2d)
{
    gpu_open(bench, &h2d->gpu);
    gpu_timer_new(&h2d->gpu, &h2d->timer);
    h2d->into = gpu_memory_new(&h2d->gpu, h2d->bytes);
    gpu_check(&h2d->gpu, h2d->gpu.driver->host_alloc(&h2d->memory[PINNED], h2d->bytes, CUDA_HOST_PORTABLE),
              "allocating page-locked memory");
    for (int kind = REGISTERED; kind < KINDS; kind++)
        bench_check_system(bench, os_memory_new(h2d->bytes, kind != SMALL_PAGES, &h2d->memory[kind]), NULL,
                           "There is not enough memory for the copies; lower --copy-bytes.");
    os_memory_small_pages(h2d->memory[SMALL_PAGES], h2d->bytes);
    for (int kind = REGISTERED; kind <= SMALL_PAGES; kind++)
        os_memory_prefer_node(h2d->memory[kind], h2d->bytes, cuda_device_node(&h2d->gpu.device));
    for (int kind = 0; kind < KINDS; kind++)
        memset(h2d->memory[kind], kind + 1, h2d->bytes);
    for (int kind = REGISTERED; kind <= SMALL_PAGES; kind++)
        h2d_register(h2d, kind);
    gpu_synchronize(&h2d->gpu);
}

static void h2d_close(struct h2d *h2d)
{
    (void)h2d->gpu.driver->stream_synchronize(h2d->gpu.stream);
    for (int kind = REGISTERED; kind <= SMALL_PAGES; kind++)
        if (h2d->registered[kind])
            (void)h2d->gpu.driver->host_unregister(h2d->memory[kind]);
    (void)h2d->gpu.driver->host_free(h2d->memory[PINNED]);
    for (int kind = REGISTERED; kind < KINDS; kind++)
        os_memory_free(h2d->memory[kind], h2d->bytes);
    gpu_memory_free(&h2d->gpu, &h2d->into);
    gpu_timer_free(&h2d->gpu, &h2d->timer);
    gpu_close(&h2d->gpu);
}

static void h2d_repeat(struct h2d *h2d, int kind, size_t which, bool counts)
{
    struct gpu *gpu = &h2d->gpu;
    const uint64_t size = h2d->sizes[which], copies = max64(1, min64(REPEAT_BYTES / size, COPIES_MOST));
    const uint64_t places = h2d->bytes / size;
    gpu_timer_start(gpu, &h2d->timer);
    for (uint64_t i = 0; i < copies; i++) {
        const uint64_t at = i % places * size;
        gpu_check(gpu,
                  gpu->driver->copy_to_device(h2d->into + at, (uint8_t *)h2d->memory[kind] + at, size, gpu->stream),
                  "copying to the GPU");
    }
    gpu_timer_stop(gpu, &h2d->timer);
    const double ms = gpu_timer_read(gpu, &h2d->timer);
    if (counts && ms > 0)
        series_add(&h2d->rates[kind][which], (double)(copies * size) / ms / 1e6);
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

static void h2d_report(struct bench *bench, const struct h2d *h2d)
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

static int h2d_run(struct bench *bench)
{
    static struct h2d h2d;
    for (uint64_t size = SMALLEST; size <= bench->options.copy_bytes && h2d.size_count < SIZES_MOST; size *= 4) {
        h2d.sizes[h2d.size_count++] = size;
        h2d.bytes = size;
    }
    h2d_open(bench, &h2d);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 9), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats))
        for (size_t which = 0; which < h2d.size_count; which++)
            for (int kind = 0; kind < KINDS; kind++)
                if (kind == PINNED || kind == PAGEABLE || h2d.registered[kind])
                    h2d_repeat(&h2d, kind, which, repeats.counts);
    h2d_close(&h2d);
    h2d_report(bench, &h2d);
    return CLI_DONE;
}

const struct bench_case case_h2d = {"h2d",
                                    "copies from host to GPU by size and kind of memory, beside the best of them",
                                    .run = h2d_run, .needs_gpu = true};

/* ==== the case `expand` ==== */

/*
 * The library's kernel, which expands a slot into the outputs.
 *
 * Three measurements: how long the kernel takes on the GPU, by size of the batch and by fields, beside a copy on the
 * device that moves as many bytes; what a launch costs the host; and the two ways from pinned memory to the outputs,
 * which are to copy and then expand (as the loader does) and to expand directly from the pinned slot.
 *
 * The slot has the layout of the loader's slots (staging/expand_arguments.h) and a document about every 1,000 tokens.
 * The time of a launch is measured with two events around many launches, so it does not include the latency of a single
 * one.
 */

enum { I32, I64, POSITIONS, ALL, SETS };
static const struct field_set {
    const char *name;
    uint32_t element;
    bool positions, documents_and_mask;
} sets[SETS] = {
    {"i32", 4, false, false}, {"i64", 8, false, false}, {"positions_i32", 4, true, false}, {"all_i64", 8, true, true}};

static const uint64_t sizes[] = {4096, 32768, 262144, (uint64_t)1 << 20, (uint64_t)1 << 24};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* In batches of up to this many tokens the cost of a launch dominates, in larger ones memory bandwidth. */
#define SMALL 32768
#define OUTPUTS 5
#define SPIN_ROUNDS 100000 /* keep the GPU busy, at first, until the launches that are timed have been enqueued */
#define SPIN_ROUNDS_MOST (SPIN_ROUNDS << 6)

struct found {
    struct series us, gb_s; /* of the kernel */
    struct series copy_gb_s;
    struct series share; /* of the copy's rate, in the same repeat */
};

struct expand_case {
    struct gpu gpu;
    struct gpu_timer timer;
    size_t sizes;
    uint64_t rows, seq_len, slot_bytes; /* of the largest batch */
    uint8_t *pinned;                    /* the slot on the host */
    uint64_t slot, outputs[OUTPUTS];    /* on the device */
    uint64_t output_bytes;
    uint64_t spin_rounds; /* rounds that kept the GPU busy for long enough until now */
    struct samples launches;
    struct found found[SIZES][SETS];
    struct series staged[SIZES], direct[SIZES]; /* us from pinned memory to the outputs, by either way */
    struct spread launch;
};

/* ---- the batch ---- */

static uint64_t row_stride(uint64_t seq_len)
{
    return round_up((seq_len + 1) * 2, 64);
}

/* Fills a row of the slot with random tokens, and its marks (batch/mark.h) with document starts at random places. */
static void fill_row(uint8_t *row, struct mark *marks, uint64_t seq_len, uint64_t *state)
{
    uint64_t until = 0;
    memset(marks, 0, (size_t)mark_words(seq_len + 1) * sizeof *marks);
    for (uint64_t token = 0; token <= seq_len; token++) {
        struct mark *mark = &marks[token / 64];
        if (token && token % 64 == 0) {
            mark->last = mark[-1].last;
            if (mark[-1].starts)
                mark->last = (uint32_t)(token - 1 - (uint64_t)__builtin_clzll(mark[-1].starts));
            mark->before = mark[-1].before + (uint32_t)__builtin_popcountll(mark[-1].starts);
        }
        if (token == until) {
            mark->starts |= (uint64_t)1 << token % 64;
            until += 1 + random_below(state, 2000);
        }
        store16(row + 2 * token, (uint16_t)random_below(state, 50257));
    }
}

/* Returns the kernel's arguments for a batch of `tokens` tokens in the first rows of the slot at address `slot`. */
static struct expand_arguments work_of(const struct expand_case *it, uint64_t slot, uint64_t tokens,
                                       const struct field_set *set)
{
    const uint64_t stride = row_stride(it->seq_len);
    return (struct expand_arguments){
        .slot = slot,
        .inputs = it->outputs[0],
        .targets = it->outputs[1],
        .position_ids = set->positions ? it->outputs[2] : 0,
        .document_ids = set->documents_and_mask ? it->outputs[3] : 0,
        .loss_mask = set->documents_and_mask ? it->outputs[4] : 0,
        .row_stride = stride,
        .marks_at = it->rows * stride,
        .row_marks = mark_words(it->seq_len + 1),
        .count = tokens / it->seq_len,
        .seq_len = it->seq_len,
        .row_tokens = it->seq_len + 1,
        .width = 2,
        .element = set->element,
    };
}

/* Returns the number of bytes that the kernel must read and write. */
static uint64_t traffic(const struct expand_arguments *work)
{
    const uint64_t outputs = 2 + (work->position_ids != 0) + (work->document_ids != 0) + (work->loss_mask != 0);
    const uint64_t marks = outputs > 2 ? work->row_marks * sizeof(struct mark) : 0;
    return work->count * (work->row_tokens * work->width + marks + outputs * work->seq_len * work->element);
}

static void expand_open(struct bench *bench, struct expand_case *it)
{
    uint64_t state = 11;
    it->spin_rounds = SPIN_ROUNDS;
    it->seq_len = min64(bench->options.seq_len, sizes[0]);
    for (it->sizes = 1; it->sizes < SIZES && sizes[it->sizes] * 16 <= bench->options.copy_bytes;)
        it->sizes++;
    it->rows = sizes[it->sizes - 1] / it->seq_len;
    const uint64_t stride = row_stride(it->seq_len), marks = mark_words(it->seq_len + 1) * sizeof(struct mark);
    it->slot_bytes = it->rows * (stride + marks);
    it->output_bytes = max64(sizes[it->sizes - 1] * 8, it->slot_bytes);
    gpu_open(bench, &it->gpu);
    gpu_take_expand(&it->gpu);
    gpu_timer_new(&it->gpu, &it->timer);
    it->slot = gpu_memory_new(&it->gpu, it->slot_bytes);
    for (int i = 0; i < OUTPUTS; i++)
        it->outputs[i] = gpu_memory_new(&it->gpu, it->output_bytes);
    void *pinned = NULL;
    gpu_check(&it->gpu, it->gpu.driver->host_alloc(&pinned, it->slot_bytes, CUDA_HOST_PORTABLE),
              "allocating page-locked memory");
    it->pinned = pinned;
    bench_samples_new(bench, &it->launches, 1 << 20);
    for (uint64_t row = 0; row < it->rows; row++)
        fill_row(it->pinned + row * stride, (struct mark *)(void *)(it->pinned + it->rows * stride + row * marks),
                 it->seq_len, &state);
    gpu_check(&it->gpu, it->gpu.driver->copy_to_device(it->slot, it->pinned, it->slot_bytes, it->gpu.stream),
              "copying the batch");
    gpu_synchronize(&it->gpu);
}

static void expand_close(struct expand_case *it)
{
    (void)it->gpu.driver->stream_synchronize(it->gpu.stream);
    (void)it->gpu.driver->host_free(it->pinned);
    gpu_memory_free(&it->gpu, &it->slot);
    for (int i = 0; i < OUTPUTS; i++)
        gpu_memory_free(&it->gpu, &it->outputs[i]);
    gpu_timer_free(&it->gpu, &it->timer);
    samples_free(&it->launches);
    gpu_close(&it->gpu);
}

/* ---- repeats ---- */

/* Returns whether the GPU is still busy with the spin before the timer's start, so that what was enqueued since then
 * runs back to back. Otherwise the next spin is twice as long, and the caller times again. */
static bool was_ahead(struct expand_case *it)
{
    if (it->gpu.driver->event_query(it->timer.from) == CUDA_NOT_READY || it->spin_rounds >= SPIN_ROUNDS_MOST)
        return true;
    it->spin_rounds *= 2;
    return false;
}

/* Enqueues many launches between two events, or many copies on the device that each move as many bytes as a launch. */
static void rate_enqueue(struct expand_case *it, const struct expand_arguments *work, bool copy, uint64_t count)
{
    struct gpu *gpu = &it->gpu;
    const uint64_t bytes = traffic(work);
    gpu_launch_spin(gpu, &(struct gpu_spin){it->outputs[0], it->spin_rounds});
    gpu_timer_start(gpu, &it->timer);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t before = os_clock_ns();
        if (copy)
            gpu_check(gpu,
                      gpu->driver->copy_on_device(it->outputs[1], it->outputs[0], min64(bytes / 2, it->output_bytes),
                                                  gpu->stream),
                      "copying on the GPU");
        else
            gpu_launch_expand(gpu, work);
        if (!copy)
            samples_add(&it->launches, os_clock_ns() - before);
    }
    gpu_timer_stop(gpu, &it->timer);
}

/* Returns the microseconds of a launch or a copy. */
static double rate_repeat(struct expand_case *it, const struct expand_arguments *work, bool copy)
{
    struct gpu *gpu = &it->gpu;
    const uint64_t count = max64(4, min64(200, ((uint64_t)256 << 20) / traffic(work)));
    double ms = 0;
    bool ahead = false;
    while (!ahead) {
        rate_enqueue(it, work, copy, count);
        ahead = was_ahead(it);
        ms = gpu_timer_read(gpu, &it->timer);
    }
    return ms * 1000 / (double)count;
}

/* Times one way from pinned memory to the outputs: a copy and a launch or, if `direct`, a launch that reads pinned
 * memory. */
static void way_repeat(struct expand_case *it, uint64_t tokens, bool direct, struct series *series)
{
    struct gpu *gpu = &it->gpu;
    const uint64_t slot = direct ? (uint64_t)(uintptr_t)it->pinned : it->slot;
    const struct expand_arguments work = work_of(it, slot, tokens, &sets[I32]);
    gpu_launch_spin(gpu, &(struct gpu_spin){it->outputs[2], it->spin_rounds});
    gpu_timer_start(gpu, &it->timer);
    if (!direct)
        gpu_check(gpu, gpu->driver->copy_to_device(it->slot, it->pinned, work.count * work.row_stride, gpu->stream),
                  "copying from pinned memory");
    gpu_launch_expand(gpu, &work);
    gpu_timer_stop(gpu, &it->timer);
    const double ms = gpu_timer_read(gpu, &it->timer);
    if (series)
        series_add(series, ms * 1000);
}

static void all_repeat(struct expand_case *it, bool counts)
{
    samples_clear(&it->launches);
    for (size_t size = 0; size < it->sizes; size++) {
        for (int set = 0; set < SETS; set++) {
            const struct expand_arguments work = work_of(it, it->slot, sizes[size], &sets[set]);
            struct found *found = &it->found[size][set];
            const double us = rate_repeat(it, &work, false), copy_us = rate_repeat(it, &work, true);
            if (!counts || us <= 0 || copy_us <= 0)
                continue;
            series_add(&found->us, us);
            series_add(&found->gb_s, (double)traffic(&work) / us / 1000);
            series_add(&found->copy_gb_s, 2 * (double)min64(traffic(&work) / 2, it->output_bytes) / copy_us / 1000);
            series_add(&found->share, series_last(&found->gb_s) / series_last(&found->copy_gb_s));
        }
        way_repeat(it, sizes[size], false, counts ? &it->staged[size] : NULL);
        way_repeat(it, sizes[size], true, counts ? &it->direct[size] : NULL);
    }
    if (counts)
        spread_add(&it->launch, &it->launches, 1000);
}

/* ---- the case ---- */

static void expand_report(struct bench *bench, const struct expand_case *it)
{
    char metric[96];
    size_t small = 0;
    for (size_t size = 1; size < it->sizes && sizes[size] <= SMALL; size++)
        if (series_median(&it->found[size][I32].us) > series_median(&it->found[small][I32].us))
            small = size;
    bench_result(bench, "small_batch_us", "us", &it->found[small][I32].us, NULL);
    for (int set = 0; set < SETS; set++) {
        const struct found *largest = &it->found[it->sizes - 1][set];
        (void)snprintf(metric, sizeof metric, "gb_s_%s", sets[set].name);
        bench_result(bench, metric, "GB/s", &largest->gb_s, &largest->copy_gb_s);
        (void)snprintf(metric, sizeof metric, "%s_share", sets[set].name);
        bench_result(bench, metric, "share", &largest->share, NULL);
        const double tokens = (double)sizes[it->sizes - 1] * 1e6;
        (void)snprintf(metric, sizeof metric, "tokens_per_s_%s", sets[set].name);
        bench_value(bench, metric, "tokens/s", tokens / series_median(&largest->us), (double)NAN);
        for (size_t size = 0; size < it->sizes; size++) {
            (void)snprintf(metric, sizeof metric, "us_%s_%llu", sets[set].name, (unsigned long long)sizes[size]);
            bench_result(bench, metric, "us", &it->found[size][set].us, NULL);
        }
    }
    for (size_t size = 0; size < it->sizes; size++) {
        (void)snprintf(metric, sizeof metric, "from_pinned_us_%llu", (unsigned long long)sizes[size]);
        bench_result(bench, metric, "us", &it->direct[size], &it->staged[size]);
    }
    bench_spread(bench, "launch", "us", &it->launch, NULL);
}

static int expand_run(struct bench *bench)
{
    static struct expand_case it;
    expand_open(bench, &it);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 9), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats))
        all_repeat(&it, repeats.counts);
    expand_close(&it);
    expand_report(bench, &it);
    return CLI_DONE;
}

const struct bench_case case_expand = {
    "expand", "the expansion kernel: time by batch size and fields, beside a device copy; launches", .run = expand_run,
    .needs_gpu = true};

/* ==== the case `race` ==== */

/*
 * A search for races: every output of many batches on a GPU is compared with the host's, while producer
 * and consumer are delayed at random.
 *
 * The batches come in rounds. Each round has its own run and two loaders over it, with fields, row length, number of
 * rows, element type and ring size drawn at random. One loader delivers to the GPU through its ring; the other makes
 * the same batches on the host, without a producer thread. A kernel on the consumer's stream computes checksums of the
 * outputs on the GPU. The host does not look at the outputs, so nothing waits that would not wait in a training loop;
 * it fetches the checksums of a block of batches at once. A word that is wrong, too late, or in the wrong place changes
 * the checksum.
 *
 * The consumer is delayed in several ways: it sleeps, kernels delay its stream before and after a batch, and it takes
 * batches in bursts, so that the ring is full at times and empty at others. The producer is delayed by other traffic on
 * the copy engine, and by the consumer's work on the reference, which needs the same processors.
 */

#define DATA "synthetic:vocab=50257,tokens=100000007,document=60"
#define BLOCK 256                   /* most batches whose checksums are fetched together */
#define ROUND 1000                  /* batches of a round, on average */
#define OUTPUT_SETS 2               /* sets of outputs, one of which is drawn for each batch */
#define TRAFFIC ((uint64_t)4 << 20) /* bytes of the largest disturbing copy */
#define SEQ_LEN_MOST 700
#define ROWS_MOST 9

enum { INPUTS, TARGETS, POSITION_IDS, ROWS, DOCUMENT_IDS, LOSS_MASK, CU_SEQLENS, LABELS, FIELDS };
static const char *const field_names[FIELDS] = {"inputs",       "targets",   "position_ids", "rows",
                                                "document_ids", "loss_mask", "cu_seqlens",   "labels"};
static const uint32_t field_bits[FIELDS] = {TOKMAP_INPUTS,       TOKMAP_TARGETS,   TOKMAP_POSITION_IDS, TOKMAP_ROWS,
                                            TOKMAP_DOCUMENT_IDS, TOKMAP_LOSS_MASK, TOKMAP_CU_SEQLENS,   TOKMAP_LABELS};

struct round {
    struct tokmap_run *run;
    struct tokmap_loader *device, *host; /* deliver the same batches */
    uint64_t seq_len, rows, cu_elements, ring_bytes, seed;
    uint32_t fields, width, mask_targets;
};

struct race {
    struct gpu gpu;
    struct CUstream_st *traffic;
    void *traffic_from;
    uint64_t traffic_to, spin_out; /* on the device */
    const char *data;
    uint64_t sums;                         /* on the device: BLOCK * FIELDS checksums */
    uint64_t wanted[BLOCK][FIELDS];        /* the host's checksums */
    uint64_t outputs[OUTPUT_SETS][FIELDS]; /* on the device */
    void *host_outputs[FIELDS];
    uint64_t output_bytes;
    struct tokmap_batch batches[BLOCK]; /* descriptions from the device's loader; their pointers are no longer valid */
    uint64_t state;                     /* of the random numbers */
    uint64_t done, rounds, compared, mismatches, waits, late_copies, host_expanded;
};

/* ---- rounds ---- */

static struct tokmap_loader *loader_open(struct bench *bench, const struct race *race, const struct round *round,
                                         bool on_device)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_loader *loader = NULL;
    options.fields = round->fields;
    options.mask_targets = round->mask_targets;
    options.threads = on_device;
    options.ring_bytes = on_device ? round->ring_bytes : 0;
    options.device = on_device ? race->gpu.name : NULL;
    bench_check(bench, tokmap_loader_open(&loader, round->run, &options, &bench->error));
    return loader;
}

static void round_open(struct bench *bench, struct race *race, struct round *round)
{
    char numbers[128];
    memset(round, 0, sizeof *round);
    round->seed = random_next(&race->state);
    round->seq_len = 1 + random_below(&race->state, SEQ_LEN_MOST);
    round->rows = 1 + random_below(&race->state, ROWS_MOST);
    const uint64_t drawn = 1 + random_below(&race->state, (1 << FIELDS) - 1);
    for (unsigned field = 0; field < FIELDS; field++)
        round->fields |= drawn >> field & 1 ? field_bits[field] : 0;
    round->mask_targets = round->fields & TOKMAP_TARGETS && random_below(&race->state, 2);
    round->ring_bytes = random_below(&race->state, 2) ? 0 : (uint64_t)1 << (17 + random_below(&race->state, 4));
    (void)snprintf(numbers, sizeof numbers, "seq_len %" PRIu64 "\nbatch %" PRIu64 "\nseed %" PRIu64 "\n",
                   round->seq_len, round->rows, round->seed);
    round->run = run_of_dataset(bench, race->data, numbers, TOKMAP_READ_AUTO);
    round->width = run_get_data(bench, round->run).info.width;
    round->device = loader_open(bench, race, round, true);
    round->host = loader_open(bench, race, round, false);
    round->cu_elements = tokmap_loader_cu_seqlens(round->device);
    if (round->cu_elements * 4 <= race->output_bytes)
        return;
    cli_say(bench->program,
            "the documents of this dataset are too short for this case: a batch can contain %" PRIu64 " of them",
            round->cu_elements);
    bench_end(bench, CLI_FAILED);
}

static void round_close(struct race *race, struct round *round)
{
    struct tokmap_stats stats = TOKMAP_STATS_INIT;
    if (!tokmap_loader_stats(round->device, &stats)) {
        race->waits += stats.waits;
        race->late_copies += stats.late_copies;
        race->host_expanded += stats.host_expanded;
    }
    tokmap_loader_close(round->device);
    tokmap_loader_close(round->host);
    tokmap_run_close(round->run);
    memset(round, 0, sizeof *round);
}

/* ---- one batch ---- */

static struct tokmap_out out_of(void *const fields[FIELDS], enum tokmap_id_type type)
{
    return (struct tokmap_out){.size = sizeof(struct tokmap_out),
                               .type = type,
                               .inputs = fields[INPUTS],
                               .targets = fields[TARGETS],
                               .position_ids = fields[POSITION_IDS],
                               .rows = fields[ROWS],
                               .document_ids = fields[DOCUMENT_IDS],
                               .loss_mask = fields[LOSS_MASK],
                               .cu_seqlens = fields[CU_SEQLENS],
                               .labels = fields[LABELS]};
}

/* Returns number and size of the words in one output of a batch. */
static struct gpu_checksum words_of(const struct round *round, const struct tokmap_batch *batch, int field,
                                    enum tokmap_id_type type)
{
    if (field == ROWS)
        return (struct gpu_checksum){.count = batch->count * batch->row_tokens, .word_bytes = round->width};
    if (field == CU_SEQLENS)
        return (struct gpu_checksum){.count = round->cu_elements, .word_bytes = 4};
    return (struct gpu_checksum){.count = batch->count * round->seq_len * (type == TOKMAP_ID_I64 ? 2 : 1),
                                 .word_bytes = 4};
}

/* Delays the consumer's stream, the consumer or the copy engine, in about a third of the calls. */
static void delay_something(struct race *race)
{
    struct gpu *gpu = &race->gpu;
    const uint64_t which = random_below(&race->state, 16);
    if (which < 3)
        gpu_launch_spin(gpu, &(struct gpu_spin){race->spin_out, random_below(&race->state, 20000)});
    if (which == 3)
        os_sleep_ns(random_below(&race->state, 100000));
    if (which == 4)
        gpu_check(gpu,
                  gpu->driver->copy_to_device(race->traffic_to, race->traffic_from,
                                              4096 << random_below(&race->state, 11), race->traffic),
                  "copying beside the loader");
}

static void device_batch(struct bench *bench, struct race *race, const struct round *round, uint64_t number,
                         enum tokmap_id_type type)
{
    struct gpu *gpu = &race->gpu;
    struct tokmap_batch *batch = &race->batches[number];
    const uint64_t *outputs = race->outputs[random_below(&race->state, OUTPUT_SETS)];
    void *fields[FIELDS];
    assert(number < BLOCK);
    for (int field = 0; field < FIELDS; field++)
        fields[field] = (void *)(uintptr_t)outputs[field]; /* NOLINT: a device address */
    const struct tokmap_out out = out_of(fields, type);
    delay_something(race);
    *batch = (struct tokmap_batch)TOKMAP_BATCH_INIT;
    bench_check(bench, tokmap_loader_next(round->device, &out, gpu->stream, batch, &bench->error));
    delay_something(race);
    for (int field = 0; field < FIELDS; field++) {
        struct gpu_checksum work = words_of(round, batch, field, type);
        work.words = outputs[field];
        work.sum = race->sums + (number * FIELDS + (uint64_t)field) * 8;
        if (round->fields & field_bits[field])
            gpu_launch_checksum(gpu, &work);
    }
}

static uint64_t host_sum(const void *words, const struct gpu_checksum *work)
{
    uint64_t sum = 0;
    if (work->word_bytes == 4)
        for (uint64_t at = 0; at < work->count; at++)
            sum += gpu_word_sum(((const uint32_t *)words)[at], at);
    else
        for (uint64_t at = 0; at < work->count; at++)
            sum += gpu_word_sum(((const uint16_t *)words)[at], at);
    return sum;
}

static void mismatch(struct bench *bench, struct race *race, const struct round *round, const char *what, uint64_t step)
{
    if (!race->mismatches++)
        cli_say(bench->program,
                "MISMATCH: %s of step %" PRIu64 " in the run with seq_len %" PRIu64 ", batch %" PRIu64 ", seed %" PRIu64
                ", fields 0x%x, mask_targets %u, ring_bytes %" PRIu64 " (further mismatches are only counted)",
                what, step, round->seq_len, round->rows, round->seed, round->fields, round->mask_targets,
                round->ring_bytes);
}

/* Makes the same batch on the host, compares its description, and computes the checksums of its outputs. */
static void host_batch(struct bench *bench, struct race *race, const struct round *round, uint64_t number,
                       enum tokmap_id_type type)
{
    const struct tokmap_out out = out_of(race->host_outputs, type);
    const struct tokmap_batch *device = &race->batches[number];
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    bench_check(bench, tokmap_loader_next(round->host, &out, NULL, &batch, &bench->error));
    if (batch.step != device->step || batch.count != device->count || batch.first_row != device->first_row ||
        batch.documents != device->documents || batch.max_seqlen != device->max_seqlen ||
        memcmp(&batch.cursor, &device->cursor, sizeof batch.cursor) != 0)
        mismatch(bench, race, round, "the description", batch.step);
    for (int field = 0; field < FIELDS; field++) {
        const struct gpu_checksum work = words_of(round, &batch, field, type);
        if (round->fields & field_bits[field])
            race->wanted[number][field] = host_sum(race->host_outputs[field], &work);
    }
}

/* ---- blocks ---- */

static void block_run(struct bench *bench, struct race *race, const struct round *round, uint64_t count)
{
    static uint64_t found[BLOCK][FIELDS];
    struct gpu *gpu = &race->gpu;
    const enum tokmap_id_type type = random_below(&race->state, 2) ? TOKMAP_ID_I64 : TOKMAP_ID_I32;
    gpu_check(gpu, gpu->driver->memset_bytes(race->sums, 0, sizeof found, gpu->stream), "clearing memory");
    for (uint64_t i = 0; i < count; i++)
        device_batch(bench, race, round, i, type);
    for (uint64_t i = 0; i < count; i++)
        host_batch(bench, race, round, i, type);
    gpu_check(gpu, gpu->driver->copy_to_host(found, race->sums, sizeof found, gpu->stream), "reading checksums");
    gpu_synchronize(gpu);
    for (uint64_t i = 0; i < count; i++)
        for (int field = 0; field < FIELDS; field++) {
            if (!(round->fields & field_bits[field]))
                continue;
            race->compared++;
            if (found[i][field] != race->wanted[i][field])
                mismatch(bench, race, round, field_names[field], race->batches[i].step);
        }
    race->done += count;
}

static void round_run(struct bench *bench, struct race *race, uint64_t batches)
{
    struct round round;
    round_open(bench, race, &round);
    const uint64_t goal = race->done + min64(batches, ROUND / 2 + random_below(&race->state, ROUND));
    while (race->done < goal && !bench_stopped())
        block_run(bench, race, &round, min64(goal - race->done, 1 + random_below(&race->state, BLOCK)));
    gpu_synchronize(&race->gpu);
    round_close(race, &round);
    race->rounds++;
}

/* ---- the case ---- */

static void race_open(struct bench *bench, struct race *race)
{
    race->data = bench->options.dataset ? bench->options.dataset : DATA;
    race->output_bytes = (uint64_t)ROWS_MOST * (SEQ_LEN_MOST + 2) * 8;
    race->state = 20261120;
    gpu_open(bench, &race->gpu);
    race->sums = gpu_memory_new(&race->gpu, sizeof race->wanted);
    race->traffic_to = gpu_memory_new(&race->gpu, TRAFFIC);
    race->spin_out = gpu_memory_new(&race->gpu, 8);
    for (int field = 0; field < FIELDS; field++) {
        for (int set = 0; set < OUTPUT_SETS; set++)
            race->outputs[set][field] = gpu_memory_new(&race->gpu, race->output_bytes);
        race->host_outputs[field] = bench_new(bench, race->output_bytes, 1);
    }
    gpu_check(&race->gpu, race->gpu.driver->host_alloc(&race->traffic_from, TRAFFIC, CUDA_HOST_PORTABLE),
              "allocating page-locked memory");
    gpu_check(&race->gpu, race->gpu.driver->stream_create(&race->traffic, CUDA_STREAM_NON_BLOCKING),
              "creating a stream");
    memset(race->traffic_from, 0x5a, TRAFFIC);
    gpu_synchronize(&race->gpu);
}

static void race_close(struct race *race)
{
    struct gpu *gpu = &race->gpu;
    (void)gpu->driver->stream_synchronize(gpu->stream);
    (void)gpu->driver->stream_synchronize(race->traffic);
    (void)gpu->driver->stream_destroy(race->traffic);
    (void)gpu->driver->host_free(race->traffic_from);
    gpu_memory_free(gpu, &race->sums);
    gpu_memory_free(gpu, &race->traffic_to);
    gpu_memory_free(gpu, &race->spin_out);
    for (int field = 0; field < FIELDS; field++) {
        for (int set = 0; set < OUTPUT_SETS; set++)
            gpu_memory_free(gpu, &race->outputs[set][field]);
        free(race->host_outputs[field]);
    }
    gpu_close(gpu);
}

static int race_run(struct bench *bench)
{
    static struct race race;
    race_open(bench, &race);
    const uint64_t started = os_clock_ns();
    while (race.done < bench->options.batches && !bench_stopped())
        round_run(bench, &race, bench->options.batches - race.done);
    const double seconds = (double)(os_clock_ns() - started) / 1e9;
    race_close(&race);
    bench_stop_check(bench);
    bench_value(bench, "mismatches", "outputs", (double)race.mismatches, 0);
    bench_value(bench, "outputs_compared", "outputs", (double)race.compared, (double)NAN);
    bench_value(bench, "batches", "batches", (double)race.done, (double)bench->options.batches);
    bench_value(bench, "rounds", "rounds", (double)race.rounds, (double)NAN);
    bench_value(bench, "batches_per_s", "batches/s", (double)race.done / seconds, (double)NAN);
    bench_value(bench, "producer_late", "batches", (double)race.waits, (double)race.done);
    bench_value(bench, "copies_late", "batches", (double)race.late_copies, (double)race.done);
    bench_value(bench, "host_expanded", "batches", (double)race.host_expanded, (double)race.done);
    return race.mismatches ? CLI_FAILED : CLI_DONE;
}

const struct bench_case case_race = {
    "race", "every output of --batches batches on a GPU, compared with the host's under random delays", .run = race_run,
    .needs_gpu = true};
