/* SPDX-License-Identifier: MIT */
/*
 * case_train_device.c - a training loop whose step a GPU computes: take a batch, read its inputs and targets, multiply
 * matrices for --step-ms, and so on.
 *
 * Two loops are compared. One gets its batches from the loader. The other uses a single batch of random ids that stays
 * on the GPU, so data costs it nothing. Their difference is what the loader costs, for whatever reason: a wait, a copy
 * that competes with the step for memory bandwidth, or the expansion on the step's own stream. The result is the rate
 * of the first loop as a share of the rate of the second, computed for each pair of repeats, with the 95% confidence
 * interval of its mean.
 *
 * As in training programs, the host runs ahead of the GPU, here by two steps. Utilization is the time of computing,
 * measured with two events around the products of each step, divided by the time of all steps.
 */
#include "case_train_device.h"

#include <math.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/dataset_make.h"
#include "harness/gpu.h"
#include "harness/operand.h"
#include "harness/page_cache.h"
#include "harness/reader.h"
#include "platform/os.h"
#include "tokmap/cuda.h"

#define AHEAD 2           /* steps by which the host is ahead of the GPU */
#define WARM 4            /* steps at the beginning of a repeat that are not measured */
#define GEMM_LARGEST 4096 /* rows of the matrices */
#define GEMM_SMALLEST 64

struct train {
    struct gpu gpu;
    struct tokmap_run *run;
    struct reader reader;
    uint64_t inputs, targets; /* the loader's outputs */
    uint64_t resident[2];     /* inputs and targets of the batch that stays on the GPU */
    uint64_t tokens;          /* of a batch */
    uint64_t sum, memory;     /* a checksum; the matrices */
    struct gpu_gemm gemm;
    uint64_t products; /* matrix products in a step */
    uint64_t steps;    /* measured in a repeat */
    struct gpu_timer all;
    struct gpu_timer computing[AHEAD];
    struct samples calls;
    struct series au, au_resident, step_ms, resident_ms, share;
    struct spread next;
    uint64_t taken, waits, late_copies;
};

/* ---- the step ---- */

/* Enqueues the products of a step. Returns the driver's result. */
static int multiply(struct train *train)
{
    int result = 0;
    for (uint64_t i = 0; i < train->products && !result; i++)
        result = gpu_launch_gemm(&train->gpu, &train->gemm);
    return result;
}

/* Chooses the size of the matrices, the largest one with which a step consists of at least four products, and the
 * number of products in a step. */
static int calibrate(struct bench *bench, struct train *train)
{
    struct gpu_timer *timer = &train->all;
    double ms = 0;
    train->products = 1;
    for (train->gemm.size = GEMM_SMALLEST;; train->gemm.size *= 2) {
        int result = multiply(train); /* warms up */
        if (!result)
            result = gpu_timer_start(&train->gpu, timer);
        if (!result)
            result = multiply(train);
        if (!result)
            result = gpu_timer_stop(&train->gpu, timer);
        if (result)
            return gpu_check(&train->gpu, result, "multiplying matrices");
        result = gpu_timer_read(&train->gpu, timer, &ms);
        if (result)
            return result;
        /* Matrices with twice as many rows take eight times as long. */
        if (ms * 8 * 4 > bench->options.step_ms || train->gemm.size == GEMM_LARGEST)
            break;
    }
    train->products = max64(1, (uint64_t)(bench->options.step_ms / (ms > 0 ? ms : 0.001) + 0.5));
    bench_say(bench, "a step multiplies matrices of %llu rows %llu times", (unsigned long long)train->gemm.size,
              (unsigned long long)train->products);
    return CLI_DONE;
}

/* Enqueues a step: reads the batch, as an embedding layer and a loss function would, and computes. */
static int step_enqueue(struct train *train, uint64_t inputs, uint64_t targets, struct gpu_timer *computing)
{
    struct gpu *gpu = &train->gpu;
    int result = gpu_timer_start(gpu, computing);
    if (!result)
        result = gpu_launch_checksum(gpu, &(struct gpu_checksum){inputs, train->tokens, 4, train->sum});
    if (!result)
        result = gpu_launch_checksum(gpu, &(struct gpu_checksum){targets, train->tokens, 4, train->sum});
    if (!result)
        result = multiply(train);
    return result ? result : gpu_timer_stop(gpu, computing);
}

/* ---- repeats ---- */

static int next(struct bench *bench, struct train *train)
{
    const uint64_t from = os_clock_ns();
    if (tokmap_cuda_next(train->reader.loader, &train->reader.out, train->gpu.stream, &train->reader.batch,
                         &train->reader.error))
        return bench_failed(bench, &train->reader.error);
    samples_add(&train->calls, os_clock_ns() - from);
    return CLI_DONE;
}

/* Runs one loop. Sets *step_ms to the mean time of a step on the GPU, and *au to the percentage of it that computes. */
static int loop_repeat(struct bench *bench, struct train *train, bool fed, double *step_ms, double *au)
{
    struct gpu *gpu = &train->gpu;
    double computing = 0, all = 0, ms = 0;
    int result = gpu_synchronize(gpu);
    for (uint64_t step = 0; step < WARM + train->steps + AHEAD && !result && !bench_stopped(); step++) {
        struct gpu_timer *timer = &train->computing[step % AHEAD];
        if (step >= AHEAD) { /* this timer measured the step AHEAD steps ago */
            result = gpu_timer_read(gpu, timer, &ms);
            computing += step - AHEAD >= WARM ? ms : 0;
        }
        if (step >= WARM + train->steps)
            continue;
        if (!result && step == WARM)
            result = gpu_check(gpu, gpu_timer_start(gpu, &train->all), "recording an event");
        if (!result && fed)
            result = next(bench, train);
        if (!result)
            result = gpu_check(gpu,
                               step_enqueue(train, fed ? train->inputs : train->resident[0],
                                            fed ? train->targets : train->resident[1], timer),
                               "enqueueing a step");
        if (!result && step + 1 == WARM + train->steps)
            result = gpu_check(gpu, gpu_timer_stop(gpu, &train->all), "recording an event");
    }
    if (result || bench_stopped())
        return CLI_FAILED;
    result = gpu_timer_read(gpu, &train->all, &all);
    *step_ms = all / (double)train->steps;
    *au = 100 * computing / (all > 0 ? all : 1);
    return result;
}

/* Runs both loops, one after the other. */
static int pair_repeat(struct bench *bench, struct train *train, bool fed_first, bool counts)
{
    double fed_ms = 0, fed_au = 0, resident_ms = 0, resident_au = 0;
    struct tokmap_stats before, after;
    samples_clear(&train->calls);
    reader_stats(&train->reader, &before);
    int result = fed_first ? loop_repeat(bench, train, true, &fed_ms, &fed_au) : CLI_DONE;
    if (!result)
        result = loop_repeat(bench, train, false, &resident_ms, &resident_au);
    if (!result && !fed_first)
        result = loop_repeat(bench, train, true, &fed_ms, &fed_au);
    reader_stats(&train->reader, &after);
    if (result || !counts || fed_ms <= 0)
        return result;
    series_add(&train->step_ms, fed_ms);
    series_add(&train->resident_ms, resident_ms);
    series_add(&train->au, fed_au);
    series_add(&train->au_resident, resident_au);
    series_add(&train->share, 100 * resident_ms / fed_ms);
    spread_add(&train->next, &train->calls, 1000);
    train->taken += after.batches - before.batches;
    train->waits += after.waits - before.waits;
    train->late_copies += after.late_copies - before.late_copies;
    return result;
}

/* ---- the case ---- */

static int batches_make(struct train *train, uint64_t vocabulary)
{
    const uint64_t bytes = train->tokens * 4;
    void *memory = NULL;
    uint64_t state = 3;
    int result = CLI_DONE;
    int system = os_memory_new(bytes, false, &memory);
    if (system)
        return bench_failed_system(train->gpu.bench, system, NULL, "There is not enough memory for a batch.");
    uint32_t *ids = memory;
    for (int i = 0; i < 2 && !result; i++) {
        for (uint64_t j = 0; j < train->tokens; j++)
            ids[j] = (uint32_t)random_below(&state, vocabulary);
        result = gpu_memory_new(&train->gpu, bytes, &train->resident[i]);
        if (!result)
            result = gpu_synchronize(&train->gpu);
        if (!result)
            result = gpu_check(&train->gpu, train->gpu.driver->copy_to_device_now(train->resident[i], ids, bytes),
                               "copying a batch");
    }
    os_memory_free(memory, bytes);
    if (!result)
        result = gpu_memory_new(&train->gpu, bytes, &train->inputs);
    return result ? result : gpu_memory_new(&train->gpu, bytes, &train->targets);
}

static int loader_start(struct bench *bench, struct train *train)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    options.device = train->gpu.name;
    options.drop_behind = bench->options.cold;
    options.world = bench->options.world;
    options.rows = bench->options.rows;
    reader_clear(&train->reader);
    if (tokmap_loader_open(&train->reader.loader, train->run, &options, &train->reader.error))
        return bench_failed(bench, &train->reader.error);
    train->reader.out.inputs = (void *)(uintptr_t)train->inputs;
    train->reader.out.targets = (void *)(uintptr_t)train->targets;
    return CLI_DONE;
}

static int train_open(struct bench *bench, struct train *train)
{
    const char *name = NULL;
    struct tokmap_source_info source = {.size = sizeof source};
    struct tokmap_dataset_info info = {.size = sizeof info};
    operand_rows(bench, max64(1, bench->options.batch_tokens / bench->options.seq_len));
    train->tokens = bench->options.rows * bench->options.seq_len;
    train->steps = max64(8, (uint64_t)(bench_seconds(bench, 2) * 1000 / bench->options.step_ms));
    int result = gpu_open(bench, &train->gpu);
    if (!result)
        result = dataset_name(bench, &name);
    if (!result)
        result = run_make(bench, name, bench->options.cold ? TOKMAP_READ_PREAD : TOKMAP_READ_AUTO, 1, TOKMAP_FOREVER,
                          &train->run);
    if (!result)
        result = run_get_info(bench, train->run, &source, &info);
    if (!result)
        result = bench->options.cold ? page_cache_drop(bench, source.dataset) : page_cache_warm(bench, source.dataset);
    if (!result)
        result = gpu_timer_new(&train->gpu, &train->all);
    for (int i = 0; i < AHEAD && !result; i++)
        result = gpu_timer_new(&train->gpu, &train->computing[i]);
    if (!result)
        result = gpu_memory_new(&train->gpu, 8, &train->sum);
    const uint64_t matrix = (uint64_t)GEMM_LARGEST * GEMM_LARGEST * sizeof(float);
    if (!result)
        result = gpu_memory_new(&train->gpu, 3 * matrix, &train->memory);
    train->gemm = (struct gpu_gemm){train->memory, train->memory + matrix, train->memory + 2 * matrix, GEMM_LARGEST};
    if (!result && !samples_new(&train->calls, 1 << 20))
        result = bench_no_memory(bench);
    if (!result)
        result = batches_make(train, info.vocabulary);
    if (!result)
        result = loader_start(bench, train);
    return result ? result : calibrate(bench, train);
}

static void train_close(struct train *train)
{
    if (train->gpu.open) {
        (void)train->gpu.driver->stream_synchronize(train->gpu.stream);
        tokmap_loader_close(train->reader.loader);
        uint64_t *const memory[] = {&train->inputs,      &train->targets, &train->resident[0],
                                    &train->resident[1], &train->sum,     &train->memory};
        for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
            gpu_memory_free(&train->gpu, memory[i]);
        gpu_timer_free(&train->gpu, &train->all);
        for (int i = 0; i < AHEAD; i++)
            gpu_timer_free(&train->gpu, &train->computing[i]);
        gpu_close(&train->gpu);
    }
    tokmap_run_close(train->run);
    samples_free(&train->calls);
}

/* Returns half the width of the 95% confidence interval of the mean, and the mean. Student's t is approximated to
 * within 1% from three values on; with fewer values the result is NAN. */
static double half_interval(const struct series *series, double *mean)
{
    double sum = 0, squares = 0;
    const double n = (double)series->count;
    for (size_t i = 0; i < series->count; i++)
        sum += series->values[i];
    *mean = sum / n;
    for (size_t i = 0; i < series->count; i++)
        squares += (series->values[i] - *mean) * (series->values[i] - *mean);
    if (series->count < 3)
        return (double)NAN;
    const double degrees = n - 1, t = 1.96 + 2.372 / degrees + 2.82 / (degrees * degrees) + 6.1 / pow(degrees, 4);
    return t * sqrt(squares / degrees / n);
}

static void report(struct bench *bench, const struct train *train)
{
    double mean, half = half_interval(&train->share, &mean);
    bench_result(bench, "share_percent", "%", &train->share, NULL);
    bench_value(bench, "share_mean_percent", "%", mean, (double)NAN);
    bench_value(bench, "share_low_percent", "%", mean - half, (double)NAN);
    bench_value(bench, "share_high_percent", "%", mean + half, (double)NAN);
    bench_result(bench, "au_percent", "%", &train->au, &train->au_resident);
    bench_result(bench, "step_ms", "ms", &train->step_ms, &train->resident_ms);
    bench_spread(bench, "next", "us", &train->next, NULL);
    bench_value(bench, "waits", "calls", (double)train->waits, (double)train->taken);
    bench_value(bench, "late_copies", "calls", (double)train->late_copies, (double)train->taken);
}

int train_device(struct bench *bench)
{
    static struct train train;
    bench->name = "device_train";
    int result = train_open(bench, &train);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 9), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats, result))
        result = pair_repeat(bench, &train, repeats.number % 2, repeats.counts);
    train_close(&train);
    if (result || bench_stopped())
        return CLI_FAILED;
    report(bench, &train);
    return CLI_DONE;
}
