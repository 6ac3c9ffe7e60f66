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
 * With --device the case runs case_train_device.c instead.
 */
#include "cases.h"

#include <stdlib.h>
#include <string.h>

#include "case_train_device.h"
#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/dataset_make.h"
#include "harness/operand.h"
#include "harness/page_cache.h"
#include "harness/plain_loop.h"
#include "harness/reader.h"
#include "platform/os.h"

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
    struct tokmap_dataset *dataset;
    uint64_t steps, step_ns;
    uint8_t *memory;   /* the batches of the loop without a loader */
    const void **rows; /* their rows */
    uint64_t batches;
    uint32_t width;
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
        train->widen(rows[row], train->width, seq_len, TOKMAP_I32, (uint8_t *)train->outputs.inputs + row * seq_len * 4,
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

static int train_steps(struct bench *bench, struct train *train, struct reader *reader)
{
    struct tokmap_stats stats, at_fill;
    struct step_sums sums = {.filled = false};
    samples_clear(&train->waits);
    memset(&at_fill, 0, sizeof at_fill);
    uint64_t before = os_clock_ns();
    for (uint64_t step = 0; step < train->steps && !bench_stopped(); step++) {
        if (reader_next(reader))
            return bench_failed(bench, &reader->error);
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
    return CLI_DONE;
}

static int train_repeat(struct bench *bench, struct train *train, uint64_t seed)
{
    struct tokmap_run *run = NULL;
    struct reader reader = {.loader = NULL};
    const enum tokmap_reading reading = bench->options.cold ? TOKMAP_READ_PREAD : TOKMAP_READ_AUTO;
    int result = bench->options.cold ? page_cache_drop(bench, train->dataset) : CLI_DONE;
    if (!result)
        result = run_make(bench, train->name, reading, seed, TOKMAP_FOREVER, &run);
    if (!result)
        result = reader_open(bench, &reader, run, 1, 0, 0);
    if (!result)
        result = train_steps(bench, train, &reader);
    reader_close(&reader);
    tokmap_run_close(run);
    return result;
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
static int idle_open(struct bench *bench, struct train *train)
{
    const uint64_t row_bytes = round_up((bench->options.seq_len + 1) * train->width, 64);
    train->batches = UNCACHED_BYTES / (bench->options.rows * row_bytes) + 1;
    const uint64_t rows = train->batches * bench->options.rows;
    train->memory = malloc((size_t)(rows * row_bytes));
    train->rows = calloc((size_t)rows, sizeof *train->rows);
    if (!train->memory || !train->rows)
        return bench_no_memory(bench);
    memset(train->memory, 1, (size_t)(rows * row_bytes));
    for (uint64_t row = 0; row < rows; row++)
        train->rows[row] = train->memory + row * row_bytes;
    return CLI_DONE;
}

static int train_open(struct bench *bench, struct train *train)
{
    const double seconds = bench_seconds(bench, 4);
    operand_rows(bench, max64(1, bench->options.batch_tokens / bench->options.seq_len));
    train->step_ns = (uint64_t)(bench->options.step_ms * 1e6);
    train->steps = max64(8, (uint64_t)(seconds * 1000 / bench->options.step_ms));
    int result = dataset_name(bench, &train->name);
    if (!result)
        result = dataset_open(bench, TOKMAP_READ_PREAD, &train->dataset);
    if (!result && !bench->options.cold)
        result = page_cache_warm(bench, train->dataset);
    struct tokmap_dataset_info info = {.size = sizeof info};
    if (!result)
        result = dataset_get_info(bench, train->dataset, &info, NULL);
    if (result)
        return result;
    train->width = info.width;
    train->widen = plain_widen_widest();
    if (!samples_new(&train->waits, (size_t)train->steps) ||
        outputs_new(&train->outputs, bench->options.rows, bench->options.seq_len, TOKMAP_I32))
        return bench_no_memory(bench);
    return idle_open(bench, train);
}

/* The loop without a loader shows what the machine itself costs, so only the difference is the loader's. */
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
    int result = train_open(bench, &train);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 5), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, result)) {
        result = train_repeat(bench, &train, repeats.number + 1);
        if (!result)
            idle_repeat(bench, &train);
    }
    outputs_free(&train.outputs);
    samples_free(&train.waits);
    free(train.memory);
    free(train.rows);
    tokmap_dataset_close(train.dataset);
    if (result || bench_stopped())
        return CLI_FAILED;
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
    "train", "an emulated training step: utilization, waits, stalls; --cold: from storage; --device: on a GPU", run};
