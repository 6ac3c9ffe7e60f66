/* SPDX-License-Identifier: MIT */
/*
 * case_train.c - a training loop with an emulated step: take a batch, widen it, compute for --step-ms (spinning or
 * sleeping), and so on.
 *
 * The main result is accelerator utilization as MLPerf Storage and its reference implementation, DLIO, define it: the
 * measured time of computing divided by the time of all steps, both without the first step. A wait is the time of a
 * call of tokmap_loader_next() that asks for row pointers only. The plain loop then writes inputs and targets; its time
 * counts as not computing.
 *
 * The limit is the same loop without a loader: it waits for nothing and widens the same batch of its own again and
 * again. Delays in that loop are caused by the machine. No loader reaches this limit, because new tokens are not in the
 * cache of the processor that widens them. So the loop runs once more with a batch after the other from memory that is
 * larger than a second-level cache, and the difference between both is the time to read a batch from further away.
 *
 * Example, on a processor with 1 MiB of second-level cache: a batch of 16,384 tokens has 32 KiB. The limit needs 2.8 us
 * a step to widen it, which leaves 99.89% of a step of 2.5 ms; with 128 batches in turn it needs 7 us, or 99.72%.
 *
 * With --device the case runs train_device() instead.
 */
#include "cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/bench_data.h"
#include "harness/gpu.h"
#include "harness/loops.h"
#include "harness/storage.h"
#include "platform/os.h"
#include "tokmap/cuda.h"

/* ==== the case `train` with --device ==== */

/*
 * A training loop whose step a GPU computes: take a batch, read its inputs and targets, multiply matrices for
 * --step-ms, and so on.
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

#define AHEAD 2           /* steps by which the host is ahead of the GPU */
#define WARM 4            /* steps at the beginning of a repeat that are not measured */
#define GEMM_LARGEST 4096 /* rows of the matrices */
#define GEMM_SMALLEST 64

struct device_train {
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

/* Enqueues the products of a step. */
static void multiply(struct device_train *train)
{
    for (uint64_t i = 0; i < train->products; i++)
        gpu_launch_gemm(&train->gpu, &train->gemm);
}

/* Chooses the size of the matrices, the largest one with which a step consists of at least four products, and the
 * number of products in a step. */
static void calibrate(struct bench *bench, struct device_train *train)
{
    struct gpu_timer *timer = &train->all;
    double ms = 0;
    train->products = 1;
    for (train->gemm.size = GEMM_SMALLEST;; train->gemm.size *= 2) {
        multiply(train); /* warms up */
        gpu_timer_start(&train->gpu, timer);
        multiply(train);
        gpu_timer_stop(&train->gpu, timer);
        ms = gpu_timer_read(&train->gpu, timer);
        /* Matrices with twice as many rows take eight times as long. */
        if (ms * 8 * 4 > bench->options.step_ms || train->gemm.size == GEMM_LARGEST)
            break;
    }
    train->products = max64(1, (uint64_t)(bench->options.step_ms / (ms > 0 ? ms : 0.001) + 0.5));
    bench_say(bench, "a step multiplies matrices of %llu rows %llu times", (unsigned long long)train->gemm.size,
              (unsigned long long)train->products);
}

/* Enqueues a step: reads the batch, as an embedding layer and a loss function would, and computes. */
static void step_enqueue(struct device_train *train, uint64_t inputs, uint64_t targets, struct gpu_timer *computing)
{
    struct gpu *gpu = &train->gpu;
    gpu_timer_start(gpu, computing);
    gpu_launch_checksum(gpu, &(struct gpu_checksum){inputs, train->tokens, 4, train->sum});
    gpu_launch_checksum(gpu, &(struct gpu_checksum){targets, train->tokens, 4, train->sum});
    multiply(train);
    gpu_timer_stop(gpu, computing);
}

/* ---- repeats ---- */

static void next(struct bench *bench, struct device_train *train)
{
    const uint64_t from = os_clock_ns();
    bench_check(bench, tokmap_cuda_next(train->reader.loader, &train->reader.out, train->gpu.stream,
                                        &train->reader.batch, &bench->error));
    samples_add(&train->calls, os_clock_ns() - from);
}

/* Times of a loop: the mean of a step on the GPU, and the percentage of it that computes. */
struct loop {
    double step_ms, au;
};

/* Runs one loop. */
static struct loop loop_repeat(struct bench *bench, struct device_train *train, bool fed)
{
    struct gpu *gpu = &train->gpu;
    double computing = 0;
    gpu_synchronize(gpu);
    for (uint64_t step = 0; step < WARM + train->steps + AHEAD; step++) {
        struct gpu_timer *timer = &train->computing[step % AHEAD];
        bench_stop_check(bench);
        if (step >= AHEAD) { /* this timer measured the step AHEAD steps ago */
            const double ms = gpu_timer_read(gpu, timer);
            computing += step - AHEAD >= WARM ? ms : 0;
        }
        if (step >= WARM + train->steps)
            continue;
        if (step == WARM)
            gpu_timer_start(gpu, &train->all);
        if (fed)
            next(bench, train);
        step_enqueue(train, fed ? train->inputs : train->resident[0], fed ? train->targets : train->resident[1], timer);
        if (step + 1 == WARM + train->steps)
            gpu_timer_stop(gpu, &train->all);
    }
    const double all = gpu_timer_read(gpu, &train->all);
    return (struct loop){all / (double)train->steps, 100 * computing / (all > 0 ? all : 1)};
}

/* Runs both loops, one after the other. */
static void pair_repeat(struct bench *bench, struct device_train *train, bool fed_first, bool counts)
{
    struct loop fed = {0, 0};
    struct tokmap_stats before, after;
    samples_clear(&train->calls);
    reader_stats(&train->reader, &before);
    if (fed_first)
        fed = loop_repeat(bench, train, true);
    const struct loop resident = loop_repeat(bench, train, false);
    if (!fed_first)
        fed = loop_repeat(bench, train, true);
    reader_stats(&train->reader, &after);
    if (!counts || fed.step_ms <= 0)
        return;
    series_add(&train->step_ms, fed.step_ms);
    series_add(&train->resident_ms, resident.step_ms);
    series_add(&train->au, fed.au);
    series_add(&train->au_resident, resident.au);
    series_add(&train->share, 100 * resident.step_ms / fed.step_ms);
    spread_add(&train->next, &train->calls, 1000);
    train->taken += after.batches - before.batches;
    train->waits += after.waits - before.waits;
    train->late_copies += after.late_copies - before.late_copies;
}

/* ---- the case ---- */

static void batches_make(struct bench *bench, struct device_train *train, uint64_t vocabulary)
{
    const uint64_t bytes = train->tokens * 4;
    uint32_t *ids = bench_new(bench, train->tokens, sizeof *ids);
    uint64_t state = 3;
    for (int i = 0; i < 2; i++) {
        for (uint64_t j = 0; j < train->tokens; j++)
            ids[j] = (uint32_t)random_below(&state, vocabulary);
        train->resident[i] = gpu_memory_new(&train->gpu, bytes);
        gpu_synchronize(&train->gpu);
        gpu_check(&train->gpu, train->gpu.driver->copy_to_device_now(train->resident[i], ids, bytes),
                  "copying a batch");
    }
    free(ids);
    train->inputs = gpu_memory_new(&train->gpu, bytes);
    train->targets = gpu_memory_new(&train->gpu, bytes);
}

static void loader_start(struct bench *bench, struct device_train *train)
{
    struct tokmap_loader_options options = reader_options(bench, 1, READER_BOTH);
    options.device = train->gpu.name;
    options.drop_behind = bench->options.cold;
    reader_open_bare(bench, &train->reader, train->run, &options);
    train->reader.out.inputs = (void *)(uintptr_t)train->inputs;
    train->reader.out.targets = (void *)(uintptr_t)train->targets;
}

static void device_train_open(struct bench *bench, struct device_train *train)
{
    const bool cold = bench->options.cold;
    const uint64_t matrix = (uint64_t)GEMM_LARGEST * GEMM_LARGEST * sizeof(float);
    operand_rows(bench, max64(1, bench->options.batch_tokens / bench->options.seq_len));
    train->tokens = bench->options.rows * bench->options.seq_len;
    train->steps = max64(8, (uint64_t)(bench_seconds(bench, 2) * 1000 / bench->options.step_ms));
    gpu_open(bench, &train->gpu);
    train->run = run_make(bench, dataset_name(bench), cold ? TOKMAP_READ_PREAD : TOKMAP_READ_AUTO, 1, TOKMAP_FOREVER);
    const struct run_data data = run_get_data(bench, train->run);
    if (cold)
        page_cache_drop(bench, data.source.dataset);
    else
        page_cache_warm(bench, data.source.dataset);
    gpu_timer_new(&train->gpu, &train->all);
    for (int i = 0; i < AHEAD; i++)
        gpu_timer_new(&train->gpu, &train->computing[i]);
    train->sum = gpu_memory_new(&train->gpu, 8);
    train->memory = gpu_memory_new(&train->gpu, 3 * matrix);
    train->gemm = (struct gpu_gemm){train->memory, train->memory + matrix, train->memory + 2 * matrix, GEMM_LARGEST};
    bench_samples_new(bench, &train->calls, 1 << 20);
    batches_make(bench, train, data.info.vocabulary);
    loader_start(bench, train);
    calibrate(bench, train);
}

static void train_close(struct device_train *train)
{
    uint64_t *const memory[] = {&train->inputs,      &train->targets, &train->resident[0],
                                &train->resident[1], &train->sum,     &train->memory};
    (void)train->gpu.driver->stream_synchronize(train->gpu.stream);
    tokmap_loader_close(train->reader.loader);
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        gpu_memory_free(&train->gpu, memory[i]);
    gpu_timer_free(&train->gpu, &train->all);
    for (int i = 0; i < AHEAD; i++)
        gpu_timer_free(&train->gpu, &train->computing[i]);
    gpu_close(&train->gpu);
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

static void report(struct bench *bench, const struct device_train *train)
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

/* Runs it. Its results have the case name "device_train". */
static int train_device(struct bench *bench)
{
    static struct device_train train;
    bench->name = "device_train";
    device_train_open(bench, &train);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 9), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats))
        pair_repeat(bench, &train, repeats.number % 2, repeats.counts);
    train_close(&train);
    report(bench, &train);
    return CLI_DONE;
}

/* ==== the case `train` ==== */

#define LONG_WAIT_NS 10000
#define UNCACHED_BYTES ((uint64_t)4 << 20) /* of batches in turn: more than the second-level cache of a processor */

struct step_sums {
    uint64_t computing_ns, all_ns; /* of all steps but the first */
    uint64_t waiting_ns, since_ns; /* in next(), and of whole steps, since the ring was full for the first time */
    uint64_t long_waits;           /* since then */
    bool filled;                   /* the ring has been full */
};

struct train {
    const char *name;
    struct opened data;
    uint64_t steps, step_ns;
    uint8_t *memory;   /* the batches of the loop without a loader */
    const void **rows; /* their rows */
    uint64_t batches;
    plain_widen *widen;
    struct samples waits;
    struct outputs outputs;
    /* Utilization, calls that found no filled slot, time of the first call. "idle": of the loop without a loader, with
     * one batch; "uncached": with all of its batches in turn. */
    struct series percent, percent_idle, percent_uncached, waiting, stalls, first_ms;
    struct spread wait, idle; /* us */
    uint64_t long_waits, long_idle;
};

/* Computes for the time of a step. Returns the time that it really took. */
static uint64_t compute(struct bench *bench, uint64_t step_ns)
{
    const uint64_t started = os_clock_ns();
    uint64_t now;
    if (bench->options.wait == BENCH_SLEEP) {
        os_sleep_ns(step_ns);
        return os_clock_ns() - started;
    }
    while ((now = os_clock_ns()) - started < step_ns)
        os_relax();
    return now - started;
}

static void widen_batch(struct bench *bench, const struct train *train, const void *const *rows, uint64_t count)
{
    const uint64_t seq_len = bench->options.seq_len;
    for (uint64_t row = 0; row < count; row++)
        train->widen(rows[row], train->data.info.width, seq_len, TOKMAP_ID_I32,
                     (uint8_t *)train->outputs.inputs + row * seq_len * 4,
                     (uint8_t *)train->outputs.targets + row * seq_len * 4);
}

/* Finishes a step whose batch has just been taken. before: the time at which the step began. Returns the time of its
 * end. */
static uint64_t finish_step(struct bench *bench, struct train *train, struct step_sums *sums, uint64_t step,
                            const void *const *rows, uint64_t count, uint64_t before)
{
    const uint64_t wait = os_clock_ns() - before;
    widen_batch(bench, train, rows, count);
    const uint64_t computing = compute(bench, train->step_ns);
    const uint64_t now = os_clock_ns();
    if (step) {
        sums->computing_ns += computing;
        sums->all_ns += now - before;
    }
    if (sums->filled) {
        samples_add(&train->waits, wait);
        sums->waiting_ns += wait;
        sums->since_ns += now - before;
        sums->long_waits += wait > LONG_WAIT_NS;
    }
    return now;
}

static void train_steps(struct bench *bench, struct train *train, struct reader *reader)
{
    struct tokmap_stats stats, at_fill;
    struct step_sums sums = {.filled = false};
    samples_clear(&train->waits);
    memset(&at_fill, 0, sizeof at_fill);
    uint64_t before = os_clock_ns();
    for (uint64_t step = 0; step < train->steps; step++) {
        reader_take(bench, reader, 1);
        bench_stop_check(bench);
        if (!step)
            series_add(&train->first_ms, (double)(os_clock_ns() - before) / 1e6);
        before = finish_step(bench, train, &sums, step, reader->batch.rows, reader->batch.count, before);
        if (!sums.filled) {
            reader_stats(reader, &at_fill);
            sums.filled = at_fill.ring_ready + 1 >= at_fill.ring_slots;
            before = os_clock_ns();
        }
    }
    reader_stats(reader, &stats);
    series_add(&train->percent, 100 * (double)sums.computing_ns / (double)max64(1, sums.all_ns));
    if (sums.since_ns)
        series_add(&train->waiting, 100 * (double)sums.waiting_ns / (double)sums.since_ns);
    series_add(&train->stalls, (double)(stats.waits - at_fill.waits));
    spread_add(&train->wait, &train->waits, 1000);
    train->long_waits += sums.long_waits;
}

static void train_repeat(struct bench *bench, struct train *train, uint64_t seed)
{
    struct reader reader = {.loader = NULL};
    const struct tokmap_loader_options options = reader_options(bench, 1, 0);
    const enum tokmap_reading reading = bench->options.cold ? TOKMAP_READ_PREAD : TOKMAP_READ_AUTO;
    if (bench->options.cold)
        page_cache_drop(bench, train->data.dataset);
    struct tokmap_run *run = run_make(bench, train->name, reading, seed, TOKMAP_FOREVER);
    reader_open(bench, &reader, run, &options);
    train_steps(bench, train, &reader);
    reader_close(&reader);
    tokmap_run_close(run);
}

/* Runs the loop without a loader, with the first `batches` of its batches in turn. Returns its utilization. */
static double idle_steps(struct bench *bench, struct train *train, uint64_t batches, struct step_sums *sums)
{
    uint64_t before = os_clock_ns();
    for (uint64_t step = 0; step < train->steps && !bench_stopped(); step++) {
        const void *const *rows = train->rows + step % batches * bench->options.rows;
        before = finish_step(bench, train, sums, step, rows, bench->options.rows, before);
        sums->filled = true;
    }
    return 100 * (double)sums->computing_ns / (double)max64(1, sums->all_ns);
}

static void idle_repeat(struct bench *bench, struct train *train)
{
    struct step_sums sums = {.filled = false}, uncached = sums;
    samples_clear(&train->waits);
    series_add(&train->percent_uncached, idle_steps(bench, train, train->batches, &uncached));
    samples_clear(&train->waits);
    series_add(&train->percent_idle, idle_steps(bench, train, 1, &sums));
    spread_add(&train->idle, &train->waits, 1000);
    train->long_idle += sums.long_waits;
}

/* Makes the batches of the loop without a loader. */
static void idle_open(struct bench *bench, struct train *train)
{
    const uint64_t row_bytes = round_up((bench->options.seq_len + 1) * train->data.info.width, 64);
    train->batches = UNCACHED_BYTES / (bench->options.rows * row_bytes) + 1;
    const uint64_t rows = train->batches * bench->options.rows;
    train->memory = bench_new(bench, rows, (size_t)row_bytes);
    train->rows = bench_new(bench, rows, sizeof *train->rows);
    memset(train->memory, 1, (size_t)(rows * row_bytes));
    for (uint64_t row = 0; row < rows; row++)
        train->rows[row] = train->memory + row * row_bytes;
}

static void train_open(struct bench *bench, struct train *train)
{
    const double seconds = bench_seconds(bench, 4);
    operand_rows(bench, max64(1, bench->options.batch_tokens / bench->options.seq_len));
    train->step_ns = (uint64_t)(bench->options.step_ms * 1e6);
    train->steps = max64(8, (uint64_t)(seconds * 1000 / bench->options.step_ms));
    train->name = dataset_name(bench);
    train->data = dataset_open(bench, TOKMAP_READ_PREAD);
    if (!bench->options.cold)
        page_cache_warm(bench, train->data.dataset);
    train->widen = plain_widen_widest();
    bench_samples_new(bench, &train->waits, (size_t)train->steps);
    outputs_new(bench, &train->outputs, bench->options.rows, TOKMAP_ID_I32);
    idle_open(bench, train);
}

/* Prints the answer. The loop without a loader shows what the machine itself costs, so only the difference is the
 * loader's. */
static void train_answer(struct bench *bench, const struct train *train)
{
    char step[32], p50[32], p99[32];
    const double lost = series_median(&train->percent_idle) - series_median(&train->percent);
    const char *answer = lost < 1   ? "Data loading is not the bottleneck of this loop"
                         : lost < 5 ? "Data loading slows this loop a little"
                                    : "Data loading is the bottleneck of this loop";
    bench_answer(bench,
                 "%s: of a step of %s, next() takes %s (p50) to %s (p99), and %.2f%% of all time is computing, beside "
                 "%.2f%% without a loader.",
                 answer, cli_seconds(bench->options.step_ms / 1e3, step),
                 cli_seconds(series_median(&train->wait.p50) / 1e6, p50),
                 cli_seconds(series_median(&train->wait.p99) / 1e6, p99), series_median(&train->percent),
                 series_median(&train->percent_idle));
}

static int run(struct bench *bench)
{
    static struct train train;
    if (bench->options.device_given)
        return train_device(bench);
    train_open(bench, &train);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 5), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats)) {
        train_repeat(bench, &train, repeats.number + 1);
        idle_repeat(bench, &train);
    }
    outputs_free(&train.outputs);
    samples_free(&train.waits);
    free(train.memory);
    free(train.rows);
    tokmap_dataset_close(train.data.dataset);
    bench_result(bench, "au_percent", "%", &train.percent, &train.percent_idle);
    bench_result(bench, "uncached_au_percent", "%", &train.percent_uncached, &train.percent_idle);
    bench_result(bench, "wait_percent", "%", &train.waiting, NULL);
    bench_spread_alone(bench, "wait", "us", &train.wait, &train.idle);
    bench_value_alone(bench, "waits_over_10us", "calls", (double)train.long_waits, (double)train.long_idle);
    bench_result(bench, "stalls", "calls", &train.stalls, NULL);
    bench_result(bench, "first_wait_ms", "ms", &train.first_ms, NULL);
    train_answer(bench, &train);
    return CLI_DONE;
}

const struct bench_case case_train = {
    "train", "an emulated training step: utilization, waits, stalls; --cold: from storage; --device: on a GPU",
    .run = run};
