/* SPDX-License-Identifier: MIT */
/*
 * case_loader_calls.c - see case_loader_calls.h.
 *
 * Counting calls. The ring is full and its producer sleeps when counting begins, and again when it ends, so exactly the
 * calls of the batches in between are counted in both threads. The first repeat is not used: in it each slot's events
 * are created, because its batches are at least two laps of the ring.
 *
 * The first opening. The driver keeps kernels that it has compiled in a cache on storage. CUDA_CACHE_DISABLE makes it
 * work as on a machine where the program runs for the first time, and CUDA_FORCE_PTX_JIT as on a GPU for which the
 * library contains no machine code.
 */
#include "case_loader_calls.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/child.h"
#include "harness/dataset_make.h"
#include "harness/driver_calls.h"
#include "platform/os.h"
#include "tokmap/cuda.h"

#define BATCHES 500     /* in which calls are counted, unless the ring has more slots */
#define FULL_SECONDS 30 /* the ring is full after this time */
#define PACE_NS 50000   /* from batch to batch, so that the producer is always ahead */

int device_reader_open(struct bench *bench, const struct gpu *gpu, const struct tokmap_run *run, uint64_t ring_bytes,
                       struct reader *reader)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    reader_clear(reader);
    options.fields = TOKMAP_INPUTS | TOKMAP_TARGETS;
    options.device = gpu->name;
    options.ring_bytes = ring_bytes;
    options.world = bench->options.world;
    options.rows = bench->options.rows;
    if (tokmap_loader_open(&reader->loader, run, &options, &reader->error))
        return bench_failed(bench, &reader->error);
    return CLI_DONE;
}

int device_reader_idle(struct bench *bench, struct gpu *gpu, const struct reader *reader)
{
    struct tokmap_stats stats;
    const uint64_t started = os_clock_ns();
    int result = gpu_synchronize(gpu);
    do {
        os_sleep_ns(1000000);
        reader_stats(reader, &stats);
    } while (stats.ring_ready + 1 < stats.ring_slots && os_clock_ns() - started < 1000000000 && !bench_stopped());
    return result;
}

/* ---- the calls of a batch ---- */

static int take(struct bench *bench, struct gpu *gpu, struct reader *reader, uint64_t batches)
{
    uint64_t due = os_clock_ns();
    for (uint64_t i = 0; i < batches && !bench_stopped(); i++, due += PACE_NS) {
        while (os_clock_ns() < due)
            os_relax();
        driver_calls_inside(true);
        const enum tokmap_status status =
            tokmap_cuda_next(reader->loader, &reader->out, gpu->stream, &reader->batch, &reader->error);
        driver_calls_inside(false);
        if (status)
            return bench_failed(bench, &reader->error);
    }
    return CLI_DONE;
}

/* Waits until the ring is full, so that its producer makes no calls. */
static int await_full(struct bench *bench, struct gpu *gpu, const struct reader *reader)
{
    struct tokmap_stats stats;
    for (int i = 0; i < FULL_SECONDS && !bench_stopped(); i++) {
        int result = device_reader_idle(bench, gpu, reader);
        reader_stats(reader, &stats);
        if (result || stats.ring_ready + 1 >= stats.ring_slots)
            return result;
    }
    cli_say(bench->program, "the ring was not full after %d seconds, so the calls of a batch cannot be counted",
            FULL_SECONDS);
    return CLI_FAILED;
}

static int calls_repeat(struct bench *bench, struct gpu *gpu, struct reader *reader, bool counts,
                        struct loader_calls *calls)
{
    struct driver_calls consumer, producer;
    struct tokmap_stats stats;
    reader_stats(reader, &stats);
    const uint64_t batches = max64(BATCHES, 2 * stats.ring_slots);
    int result = await_full(bench, gpu, reader);
    driver_calls_count(true);
    if (!result)
        result = take(bench, gpu, reader, batches);
    if (!result)
        result = await_full(bench, gpu, reader);
    driver_calls_count(false);
    if (result || !counts)
        return result;
    driver_calls_read(&consumer, &producer);
    const double each = 1 / (double)batches;
    series_add(&calls->producer, (double)producer.calls * each);
    series_add(&calls->consumer, (double)consumer.calls * each);
    series_add(&calls->waiting, (double)(producer.waiting + consumer.waiting) * each);
    series_add(&calls->producer_us, producer.us * each);
    series_add(&calls->consumer_us, consumer.us * each);
    series_add(&calls->both_us, (producer.us + consumer.us) * each);
    return CLI_DONE;
}

int loader_calls_measure(struct bench *bench, struct gpu *gpu, struct reader *reader, struct loader_calls *calls)
{
    int result = CLI_DONE;
    struct repeats repeats = repeats_begin(bench_repeats(bench, 7), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats, result))
        result = calls_repeat(bench, gpu, reader, repeats.counts, calls);
    if (!result && !bench_stopped())
        driver_calls_end();
    return result;
}

void loader_calls_report(struct bench *bench, const struct loader_calls *calls)
{
    bench_result(bench, "producer_calls", "calls", &calls->producer, NULL);
    bench_result(bench, "consumer_calls", "calls", &calls->consumer, NULL);
    bench_result(bench, "waiting_calls", "calls", &calls->waiting, NULL);
    bench_result(bench, "producer_call_us", "us", &calls->producer_us, NULL);
    bench_result(bench, "consumer_call_us", "us", &calls->consumer_us, NULL);
    bench_result(bench, "driver_call_us", "us", &calls->both_us, NULL);
}

/* ---- the first loader of a process ---- */

int first_opening_child(struct bench *bench)
{
    struct gpu gpu;
    struct tokmap_run *run = NULL;
    struct reader reader = {.loader = NULL};
    int result = gpu_open(bench, &gpu);
    if (!result)
        result = run_make(bench, bench->options.dataset, TOKMAP_READ_AUTO, 1, TOKMAP_FOREVER, &run);
    const uint64_t started = os_clock_ns();
    if (!result)
        result = device_reader_open(bench, &gpu, run, OPEN_BYTES, &reader);
    const uint64_t spent = os_clock_ns() - started;
    if (!result)
        (void)printf("ms=%.6f\n", (double)spent / 1e6);
    tokmap_loader_close(reader.loader);
    tokmap_run_close(run);
    gpu_close(&gpu);
    return result;
}

static int opening_repeat(struct bench *bench, const char *name, bool compiled, struct series *series)
{
    char output[256] = "", device[32], rows[32], seq_len[32];
    (void)snprintf(device, sizeof device, "%" PRIu64, bench->options.device);
    (void)snprintf(rows, sizeof rows, "%" PRIu64, bench->options.rows);
    (void)snprintf(seq_len, sizeof seq_len, "%" PRIu64, bench->options.seq_len);
    const char *arguments[] = {
        CHILD_MARK, FIRST_OPENING_CHILD, "loader", "--device", device, name, NULL, NULL, NULL, NULL, NULL};
    if (!bench->options.run_file) {
        const char *const more[] = {"--rows", rows, "--seq-len", seq_len};
        memcpy(arguments + 6, more, sizeof more);
    }
    if (setenv("CUDA_CACHE_DISABLE", "1", 1) || (compiled && setenv("CUDA_FORCE_PTX_JIT", "1", 1)))
        return bench_no_memory(bench);
    const int result = child_run(bench, bench->self, arguments, output, sizeof output, NULL);
    (void)unsetenv("CUDA_CACHE_DISABLE");
    (void)unsetenv("CUDA_FORCE_PTX_JIT");
    const double ms = child_number(output, "ms");
    if (!result && isfinite(ms))
        series_add(series, ms);
    return result;
}

int first_opening_measure(struct bench *bench, struct first_opening *opening)
{
    const char *name = bench->options.run_file;
    int result = name ? CLI_DONE : dataset_name(bench, &name);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 7), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, result)) {
        result = opening_repeat(bench, name, false, &opening->machine_code);
        if (!result)
            result = opening_repeat(bench, name, true, &opening->compiled);
    }
    return result;
}

void first_opening_report(struct bench *bench, const struct first_opening *opening)
{
    bench_result(bench, "open_first_64mib_ms", "ms", &opening->machine_code, NULL);
    bench_result(bench, "open_first_compiled_64mib_ms", "ms", &opening->compiled, NULL);
}
