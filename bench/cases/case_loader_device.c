/* SPDX-License-Identifier: MIT */
/*
 * case_loader_device.c - batches delivered to a GPU: what a batch costs the host, how long it takes to arrive, how
 * often it is not ready, and how long opening takes.
 *
 * tokmap_cuda_next() enqueues a wait, a kernel launch and an event record. The cost of a launch alone is measured
 * beside it with a kernel that does nothing. The whole cost of a batch includes the calls of the producer thread, which
 * cannot be timed from outside because the thread also gathers. It is measured in two ways. One counts and times the
 * loader's own calls, in both threads. The other makes the calls that a batch cannot do without,
 * in the same order, on streams and events that belong to this case.
 */
#include "cases.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/bench_data.h"
#include "harness/child.h"
#include "harness/gpu.h"
#include "harness/loops.h"
#include "harness/storage.h"
#include "platform/os.h"
#include "tokmap/cuda.h"

/* ==== calls of the driver, counted ==== */

/*
 * Counts and times the calls of the CUDA driver that a loader makes, in both of its threads.
 *
 * driver_calls_begin() replaces functions in the driver's table, through which the library makes all its calls, by
 * functions that count, look at the clock, and call the driver. So what is counted is what the loader does, not a copy
 * of it. All functions that a batch could call are replaced; those for finding devices and loading modules are not.
 */

/* The calls of one thread between driver_calls_count(true) and driver_calls_count(false). */
struct driver_calls {
    uint64_t calls;
    uint64_t waiting; /* of these, calls that allocate, free, or wait for the GPU. The producer's waits for a copy that
                         a lap of the ring ago was enqueued are not among them */
    double us;        /* the time that they take: for each function its median, times its calls */
};

/* The functions that are replaced, as XX(waits, field, arguments, passed):
 *   waits    1: it allocates, frees, or waits for the GPU; 2: it does that in the consumer, and in the producer it
 *            waits for a copy that was enqueued a lap of the ring ago
 *   passed   the names of the arguments */
#define COUNTED_CALLS(XX)                                                                                              \
    XX(0, ctx_push, (struct CUctx_st * context), (context))                                                            \
    XX(0, ctx_pop, (struct CUctx_st * *context), (context))                                                            \
    XX(0, ctx_set_current, (struct CUctx_st * context), (context))                                                     \
    XX(0, ctx_get_current, (struct CUctx_st * *context), (context))                                                    \
    XX(0, ctx_get_id, (struct CUctx_st * context, unsigned long long *id), (context, id))                              \
    XX(0, ctx_get_device, (int *device), (device))                                                                     \
    XX(1, ctx_synchronize, (void), ())                                                                                 \
    XX(0, exchange_capture_mode, (int *mode), (mode))                                                                  \
    XX(0, stream_get_ctx, (struct CUstream_st * stream, struct CUctx_st * *context), (stream, context))                \
    XX(0, stream_get_both_ctx,                                                                                         \
       (struct CUstream_st * stream, struct CUctx_st * *context, struct CUgreenCtx_st * *green),                       \
       (stream, context, green))                                                                                       \
    XX(0, stream_is_capturing, (struct CUstream_st * stream, int *capturing), (stream, capturing))                     \
    XX(1, stream_create, (struct CUstream_st * *stream, unsigned flags), (stream, flags))                              \
    XX(1, stream_create_with_priority, (struct CUstream_st * *stream, unsigned flags, int priority),                   \
       (stream, flags, priority))                                                                                      \
    XX(1, stream_destroy, (struct CUstream_st * stream), (stream))                                                     \
    XX(0, stream_wait_event, (struct CUstream_st * stream, struct CUevent_st * event, unsigned flags),                 \
       (stream, event, flags))                                                                                         \
    XX(1, stream_synchronize, (struct CUstream_st * stream), (stream))                                                 \
    XX(0, stream_query, (struct CUstream_st * stream), (stream))                                                       \
    XX(1, event_create, (struct CUevent_st * *event, unsigned flags), (event, flags))                                  \
    XX(1, event_destroy, (struct CUevent_st * event), (event))                                                         \
    XX(0, event_record, (struct CUevent_st * event, struct CUstream_st * stream), (event, stream))                     \
    XX(0, event_query, (struct CUevent_st * event), (event))                                                           \
    XX(2, event_synchronize, (struct CUevent_st * event), (event))                                                     \
    XX(1, mem_alloc, (uint64_t * address, size_t bytes), (address, bytes))                                             \
    XX(1, mem_free, (uint64_t address), (address))                                                                     \
    XX(1, host_register, (void *memory, size_t bytes, unsigned flags), (memory, bytes, flags))                         \
    XX(1, host_unregister, (void *memory), (memory))                                                                   \
    XX(1, host_alloc, (void **memory, size_t bytes, unsigned flags), (memory, bytes, flags))                           \
    XX(1, host_free, (void *memory), (memory))                                                                         \
    XX(0, copy_to_device, (uint64_t into, const void *from, size_t bytes, struct CUstream_st *stream),                 \
       (into, from, bytes, stream))                                                                                    \
    XX(0, copy_to_host, (void *into, uint64_t from, size_t bytes, struct CUstream_st *stream),                         \
       (into, from, bytes, stream))                                                                                    \
    XX(0, copy_on_device, (uint64_t into, uint64_t from, size_t bytes, struct CUstream_st * stream),                   \
       (into, from, bytes, stream))                                                                                    \
    XX(1, copy_to_device_now, (uint64_t into, const void *from, size_t bytes), (into, from, bytes))                    \
    XX(1, copy_to_host_now, (void *into, uint64_t from, size_t bytes), (into, from, bytes))                            \
    XX(0, memset_bytes, (uint64_t into, unsigned char value, size_t count, struct CUstream_st *stream),                \
       (into, value, count, stream))                                                                                   \
    XX(0, launch_kernel,                                                                                               \
       (struct CUfunc_st * function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,              \
        unsigned block_y, unsigned block_z, unsigned shared_bytes, struct CUstream_st *stream, void **arguments,       \
        void **extra),                                                                                                 \
       (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, arguments, extra))          \
    XX(0, pointer_get_attribute, (void *value, int attribute, uint64_t address), (value, attribute, address))

enum {
#define CALL_NUMBER(waits, field, arguments, passed) CALL_##field,
    COUNTED_CALLS(CALL_NUMBER)
#undef CALL_NUMBER
        CALLS
};

static const int call_waits[CALLS] = {
#define CALL_WAITS(waits, field, arguments, passed) waits,
    COUNTED_CALLS(CALL_WAITS)
#undef CALL_WAITS
};

enum { CONSUMER, PRODUCER, CALL_SIDES };
#define SAMPLES_MOST ((size_t)1 << 14)

static struct cuda_driver *driver_table; /* NULL: driver_calls_begin() was not called */
static struct cuda_driver driver_real;   /* as the table was */
static uint64_t call_counts[CALL_SIDES][CALLS];
static struct samples call_samples[CALL_SIDES][CALLS];
static int calls_counting;                        /* atomic */
static __thread bool is_consumer, inside_of_next; /* of a thread */

/* Returns the side for which a call of this thread call_counts, or CALL_SIDES. */
static int side_of_call(void)
{
    if (!__atomic_load_n(&calls_counting, __ATOMIC_ACQUIRE) || (is_consumer && !inside_of_next))
        return CALL_SIDES;
    return is_consumer ? CONSUMER : PRODUCER;
}

static void call_note(int side, int call, uint64_t ns)
{
    call_counts[side][call]++;
    samples_add(&call_samples[side][call], ns);
}

#define COUNTED_CALL(waits, field, arguments, passed)                                                                  \
    static int counted_##field arguments                                                                               \
    {                                                                                                                  \
        const int side = side_of_call();                                                                               \
        if (side == CALL_SIDES)                                                                                        \
            return driver_real.field passed;                                                                           \
        const uint64_t began = os_clock_ns();                                                                          \
        const int result = driver_real.field passed;                                                                   \
        call_note(side, CALL_##field, os_clock_ns() - began);                                                          \
        return result;                                                                                                 \
    }
COUNTED_CALLS(COUNTED_CALL)
#undef COUNTED_CALL

/* Counts from now on, beginning at zero, or does not count any more. The consumer's calls count only while
 * inside_of_next is true, so that the calls of the benchmark itself do not. */
static void driver_calls_count(bool count)
{
    if (count) {
        memset(call_counts, 0, sizeof call_counts);
        for (int side = 0; side < CALL_SIDES; side++)
            for (int call = 0; call < CALLS; call++)
                samples_clear(&call_samples[side][call]);
    }
    __atomic_store_n(&calls_counting, count, __ATOMIC_RELEASE);
}

/* Begins on a driver that no other thread uses yet. The calling thread is the consumer, all others are producers. */
static void driver_calls_begin(struct bench *bench, const struct cuda_driver *driver)
{
    assert(!driver_table);
    is_consumer = true;
    driver_table = (struct cuda_driver *)(uintptr_t)driver;
    driver_real = *driver_table;
    for (int side = 0; side < CALL_SIDES; side++)
        for (int call = 0; call < CALLS; call++)
            bench_samples_new(bench, &call_samples[side][call], SAMPLES_MOST);
#define REPLACE_CALL(waits, field, arguments, passed) driver_table->field = driver_real.field ? counted_##field : NULL;
    COUNTED_CALLS(REPLACE_CALL)
#undef REPLACE_CALL
}

/* Restores the table, at a time when no other thread uses the driver. */
static void driver_calls_end(void)
{
    if (!driver_table)
        return;
    *driver_table = driver_real;
    driver_table = NULL;
    is_consumer = false;
    driver_calls_count(false);
    for (int side = 0; side < CALL_SIDES; side++)
        for (int call = 0; call < CALLS; call++)
            samples_free(&call_samples[side][call]);
}

/* Returns the time between two looks at the clock, which is a part of every sample; 0 without memory. */
static double look_ns(void)
{
    struct samples looks = {.ns = NULL};
    double ns = 0;
    if (samples_new(&looks, 1000)) {
        for (size_t i = 0; i < 1000; i++) {
            const uint64_t from = os_clock_ns();
            samples_add(&looks, os_clock_ns() - from);
        }
        ns = samples_at(&looks, 0.5);
    }
    samples_free(&looks);
    return ns;
}

static void calls_read_side(int side, double clock, struct driver_calls *found)
{
    *found = (struct driver_calls){.calls = 0};
    for (int call = 0; call < CALLS; call++) {
        const uint64_t count = call_counts[side][call];
        const double ns = count ? samples_at(&call_samples[side][call], 0.5) - clock : 0;
        found->calls += count;
        found->waiting += call_waits[call] == 1 || (call_waits[call] && side == CONSUMER) ? count : 0;
        found->us += ns > 0 ? ns * (double)count / 1000 : 0;
    }
}

/* Fills in what was counted. To be called once the other threads make no more calls. */
static void driver_calls_read(struct driver_calls *consumer, struct driver_calls *producer)
{
    const double clock = look_ns();
    calls_read_side(CONSUMER, clock, consumer);
    calls_read_side(PRODUCER, clock, producer);
}

/* ==== the calls of a batch, and the first loader of a process ==== */

/*
 * Parts of the case `loader --device`: the driver's calls that a batch needs, and the opening of the first loader of a
 * process; and what they share with the rest of that case.
 *
 * Counting calls. The ring is full and its producer sleeps when counting begins, and again when it ends, so exactly the
 * calls of the batches in between are counted in both threads. The first repeat is not used: in it each slot's events
 * are created, because its batches are at least two laps of the ring.
 *
 * The first opening. The driver keeps kernels that it has compiled in a cache on storage. CUDA_CACHE_DISABLE makes it
 * work as on a machine where the program runs for the first time, and CUDA_FORCE_PTX_JIT as on a GPU for which the
 * library contains no machine code.
 */

/* The calls of a batch, and the time that they take. */
struct loader_calls {
    struct series producer, consumer, waiting; /* calls a batch; waiting: of both, those that wait for the GPU */
    struct series producer_us, consumer_us, both_us;
};

#define OPEN_BYTES ((uint64_t)64 << 20) /* ring of a loader whose opening is timed */

/* The time of opening the first loader of a process in which the GPU's context exists, in ms, with no kernel in the
 * driver's cache. compiled: the driver does not use the machine code that the library contains. */
struct first_opening {
    struct series machine_code, compiled;
};

#define BATCHES 500     /* in which calls are counted, unless the ring has more slots */
#define FULL_SECONDS 30 /* the ring is full after this time */
#define PACE_NS 50000   /* from batch to batch, so that the producer is always ahead */

/* Opens a loader of inputs and targets over the run, which delivers to the GPU. ring_bytes: 0 for the default. */
static void device_reader_open(struct bench *bench, const struct gpu *gpu, const struct tokmap_run *run,
                               uint64_t ring_bytes, struct reader *reader)
{
    struct tokmap_loader_options options = reader_options(bench, 1, READER_BOTH);
    options.device = gpu->name;
    options.ring_bytes = ring_bytes;
    reader_open_bare(bench, reader, run, &options);
}

/* Waits until the stream is empty and the ring is full, but for at most a second. */
static void device_reader_idle(struct bench *bench, struct gpu *gpu, const struct reader *reader)
{
    struct tokmap_stats stats;
    const uint64_t started = os_clock_ns();
    gpu_synchronize(gpu);
    do {
        os_sleep_ns(1000000);
        reader_stats(reader, &stats);
    } while (stats.ring_ready + 1 < stats.ring_slots && os_clock_ns() - started < 1000000000 && !bench_stopped());
}

/* ---- the calls of a batch ---- */

static void take(struct bench *bench, struct gpu *gpu, struct reader *reader, uint64_t batches)
{
    uint64_t due = os_clock_ns();
    for (uint64_t i = 0; i < batches && !bench_stopped(); i++, due += PACE_NS) {
        while (os_clock_ns() < due)
            os_relax();
        inside_of_next = true;
        const enum tokmap_status status =
            tokmap_cuda_next(reader->loader, &reader->out, gpu->stream, &reader->batch, &bench->error);
        inside_of_next = false;
        bench_check(bench, status);
    }
}

/* Waits until the ring is full, so that its producer makes no calls. */
static void await_full(struct bench *bench, struct gpu *gpu, const struct reader *reader)
{
    struct tokmap_stats stats;
    for (int i = 0; i < FULL_SECONDS; i++) {
        bench_stop_check(bench);
        device_reader_idle(bench, gpu, reader);
        reader_stats(reader, &stats);
        if (stats.ring_ready + 1 >= stats.ring_slots)
            return;
    }
    cli_say(bench->program, "the ring was not full after %d seconds, so the calls of a batch cannot be counted",
            FULL_SECONDS);
    bench_end(bench, CLI_FAILED);
}

static void calls_repeat(struct bench *bench, struct gpu *gpu, struct reader *reader, bool counts,
                         struct loader_calls *calls)
{
    struct driver_calls consumer, producer;
    struct tokmap_stats stats;
    reader_stats(reader, &stats);
    const uint64_t batches = max64(BATCHES, 2 * stats.ring_slots);
    await_full(bench, gpu, reader);
    driver_calls_count(true);
    take(bench, gpu, reader, batches);
    await_full(bench, gpu, reader);
    driver_calls_count(false);
    if (!counts)
        return;
    driver_calls_read(&consumer, &producer);
    const double each = 1 / (double)batches;
    series_add(&calls->producer, (double)producer.calls * each);
    series_add(&calls->consumer, (double)consumer.calls * each);
    series_add(&calls->waiting, (double)(producer.waiting + consumer.waiting) * each);
    series_add(&calls->producer_us, producer.us * each);
    series_add(&calls->consumer_us, consumer.us * each);
    series_add(&calls->both_us, (producer.us + consumer.us) * each);
}

/* Counts them while the reader's loader is the only one. driver_calls_begin() was called before that loader was opened.
 * The driver's table is then as before. */
static void loader_calls_measure(struct bench *bench, struct gpu *gpu, struct reader *reader,
                                 struct loader_calls *calls)
{
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 7), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats))
        calls_repeat(bench, gpu, reader, repeats.counts, calls);
    driver_calls_end();
}

static void loader_calls_report(struct bench *bench, const struct loader_calls *calls)
{
    bench_result(bench, "producer_calls", "calls", &calls->producer, NULL);
    bench_result(bench, "consumer_calls", "calls", &calls->consumer, NULL);
    bench_result(bench, "waiting_calls", "calls", &calls->waiting, NULL);
    bench_result(bench, "producer_call_us", "us", &calls->producer_us, NULL);
    bench_result(bench, "consumer_call_us", "us", &calls->consumer_us, NULL);
    bench_result(bench, "driver_call_us", "us", &calls->both_us, NULL);
}

/* ---- the first loader of a process ---- */

#define FIRST_OPENING_CHILD "first-opening" /* options.child of a copy */

/* Does the work of a copy of this program: opens the first loader of a process. */
static int first_opening_child(struct bench *bench)
{
    struct gpu gpu;
    struct reader reader = {.loader = NULL};
    gpu_open(bench, &gpu);
    struct tokmap_run *run = run_make(bench, bench->options.dataset, TOKMAP_READ_AUTO, 1, TOKMAP_FOREVER);
    const uint64_t started = os_clock_ns();
    device_reader_open(bench, &gpu, run, OPEN_BYTES, &reader);
    (void)printf("ms=%.6f\n", (double)(os_clock_ns() - started) / 1e6);
    tokmap_loader_close(reader.loader);
    tokmap_run_close(run);
    gpu_close(&gpu);
    return CLI_DONE;
}

static void opening_repeat(struct bench *bench, const char *name, bool compiled, struct series *series)
{
    char output[256] = "";
    struct child_arguments arguments = {.list = {CHILD_MARK, FIRST_OPENING_CHILD, "loader", name}, .count = 4};
    arguments_number(&arguments, "--device", bench->options.device);
    if (!bench->options.run_file) {
        arguments_number(&arguments, "--rows", bench->options.rows);
        arguments_number(&arguments, "--seq-len", bench->options.seq_len);
    }
    if (setenv("CUDA_CACHE_DISABLE", "1", 1) || (compiled && setenv("CUDA_FORCE_PTX_JIT", "1", 1)))
        bench_no_memory(bench);
    child_run(bench, bench->self, arguments.list, output, sizeof output, NULL);
    (void)unsetenv("CUDA_CACHE_DISABLE");
    (void)unsetenv("CUDA_FORCE_PTX_JIT");
    const double ms = child_number(output, "ms");
    if (isfinite(ms))
        series_add(series, ms);
}

/* Measures it in copies of this program. */
static void first_opening_measure(struct bench *bench, struct first_opening *opening)
{
    const char *name = bench->options.run_file ? bench->options.run_file : dataset_name(bench);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 7), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats)) {
        opening_repeat(bench, name, false, &opening->machine_code);
        opening_repeat(bench, name, true, &opening->compiled);
    }
}

static void first_opening_report(struct bench *bench, const struct first_opening *opening)
{
    bench_result(bench, "open_first_64mib_ms", "ms", &opening->machine_code, NULL);
    bench_result(bench, "open_first_compiled_64mib_ms", "ms", &opening->compiled, NULL);
}

/* ==== the case `loader` with --device ==== */

#define ENQUEUED 32          /* batches enqueued by hand before the case waits for them */
#define PACED_NS_LEAST 50000 /* a paced consumer takes at most 20,000 batches per second */

struct device_loader {
    struct gpu gpu;
    struct tokmap_run *run;
    struct reader reader;
    uint64_t inputs, targets, word; /* device addresses */
    uint64_t batch_ns;              /* time of a batch without pauses */

    /* For making the same calls by hand. */
    struct CUstream_st *copies;
    struct CUevent_st *copied, *expanded, *ready;
    void *pinned;
    uint64_t twin, slot_bytes;

    struct samples calls, launches, others;
    struct series rate, over_launch, open_ms, not_ready;
    struct spread next, launch, ready_us, enqueue;
    struct loader_calls counted;
    struct first_opening first;
    uint64_t batches, waits, late_copies;
};

static void next(struct bench *bench, struct device_loader *it)
{
    bench_check(bench,
                tokmap_cuda_next(it->reader.loader, &it->reader.out, it->gpu.stream, &it->reader.batch, &bench->error));
}

static void by_hand_open(struct device_loader *it)
{
    struct gpu *gpu = &it->gpu;
    const struct cuda_driver *driver = gpu->driver;
    const unsigned untimed = CUDA_EVENT_DISABLE_TIMING, blocking = CUDA_EVENT_BLOCKING_SYNC | untimed;
    static const char doing[] = "creating streams and events";
    gpu_check(gpu, driver->stream_create(&it->copies, CUDA_STREAM_NON_BLOCKING), doing);
    gpu_check(gpu, driver->event_create(&it->copied, blocking), doing);
    gpu_check(gpu, driver->event_create(&it->expanded, blocking), doing);
    gpu_check(gpu, driver->event_create(&it->ready, untimed), doing);
    gpu_check(gpu, driver->host_alloc(&it->pinned, it->slot_bytes, CUDA_HOST_PORTABLE), doing);
    memset(it->pinned, 1, it->slot_bytes);
    it->twin = gpu_memory_new(gpu, it->slot_bytes);
}

static void open_all(struct bench *bench, struct device_loader *it)
{
    const uint64_t rows = bench->options.rows, seq_len = bench->options.seq_len;
    gpu_open(bench, &it->gpu);
    it->run = run_make(bench, dataset_name(bench), TOKMAP_READ_AUTO, 1, TOKMAP_FOREVER);
    const struct run_data data = run_get_data(bench, it->run);
    page_cache_warm(bench, data.source.dataset);
    it->slot_bytes = rows * round_up((seq_len + 1) * data.info.width, 64);
    bench_samples_new(bench, &it->calls, 1 << 20);
    bench_samples_new(bench, &it->launches, 1 << 20);
    bench_samples_new(bench, &it->others, 1 << 20);
    it->inputs = gpu_memory_new(&it->gpu, rows * seq_len * 4);
    it->targets = gpu_memory_new(&it->gpu, rows * seq_len * 4);
    it->word = gpu_memory_new(&it->gpu, 8);
    by_hand_open(it);
    driver_calls_begin(bench, it->gpu.driver);
    device_reader_open(bench, &it->gpu, it->run, 0, &it->reader);
    it->reader.out.inputs = (void *)(uintptr_t)it->inputs;
    it->reader.out.targets = (void *)(uintptr_t)it->targets;
    loader_calls_measure(bench, &it->gpu, &it->reader, &it->counted);
    gpu_synchronize(&it->gpu);
}

static void close_all(struct device_loader *it)
{
    const struct cuda_driver *driver = it->gpu.driver;
    struct CUevent_st *const events[] = {it->copied, it->expanded, it->ready};
    uint64_t *const memory[] = {&it->twin, &it->inputs, &it->targets, &it->word};
    (void)driver->stream_synchronize(it->gpu.stream);
    tokmap_loader_close(it->reader.loader);
    (void)driver->stream_synchronize(it->copies);
    (void)driver->stream_destroy(it->copies);
    for (size_t i = 0; i < 3; i++)
        (void)driver->event_destroy(events[i]);
    (void)driver->host_free(it->pinned);
    for (size_t i = 0; i < 4; i++)
        gpu_memory_free(&it->gpu, memory[i]);
    gpu_close(&it->gpu);
    tokmap_run_close(it->run);
    samples_free(&it->calls);
    samples_free(&it->launches);
    samples_free(&it->others);
}

/* ---- repeats ---- */

static void flat_out_repeat(struct bench *bench, struct device_loader *it, bool counts)
{
    const uint64_t length = (uint64_t)(bench_seconds(bench, 0.4) * 1e9), started = os_clock_ns();
    uint64_t batches = 0;
    while ((os_clock_ns() - started < length || !batches) && !bench_stopped())
        for (int i = 0; i < 16; i++, batches++)
            next(bench, it);
    gpu_synchronize(&it->gpu);
    const uint64_t spent = os_clock_ns() - started;
    it->batch_ns = spent / batches;
    if (counts)
        series_add(&it->rate, (double)(batches * it->reader.batch.tokens) / (double)spent * 1e9);
}

/* Measures a consumer at half the rate that the loader reaches. */
static void paced_repeat(struct bench *bench, struct device_loader *it)
{
    const uint64_t length = (uint64_t)(bench_seconds(bench, 1) * 1e9), period = max64(2 * it->batch_ns, PACED_NS_LEAST);
    struct tokmap_stats before, after;
    device_reader_idle(bench, &it->gpu, &it->reader);
    samples_clear(&it->calls);
    samples_clear(&it->launches);
    reader_stats(&it->reader, &before);
    uint64_t due = os_clock_ns();
    for (const uint64_t end = due + length; due < end && !bench_stopped();) {
        const uint64_t from = os_clock_ns();
        next(bench, it);
        const uint64_t between = os_clock_ns();
        gpu_launch_spin(&it->gpu, &(struct gpu_spin){it->word, 0});
        const uint64_t to = os_clock_ns();
        samples_add(&it->calls, between - from);
        samples_add(&it->launches, to - between);
        due = max64(due + period, to);
        while (os_clock_ns() < due)
            os_relax();
    }
    reader_stats(&it->reader, &after);
    const uint64_t batches = after.batches - before.batches;
    const uint64_t not_ready = after.waits - before.waits + after.late_copies - before.late_copies;
    it->batches += batches;
    it->waits += after.waits - before.waits;
    it->late_copies += after.late_copies - before.late_copies;
    series_add(&it->not_ready, (double)not_ready / (double)max64(1, batches));
    spread_add(&it->next, &it->calls, 1000);
    spread_add(&it->launch, &it->launches, 1000);
    series_add(&it->over_launch, (samples_at(&it->calls, 0.5) - samples_at(&it->launches, 0.5)) / 1000);
}

/* Times one batch at a time from the call until the outputs are written. */
static void ready_repeat(struct bench *bench, struct device_loader *it)
{
    const struct cuda_driver *driver = it->gpu.driver;
    device_reader_idle(bench, &it->gpu, &it->reader);
    samples_clear(&it->others);
    for (int i = 0; i < 200 && !bench_stopped(); i++) {
        const uint64_t from = os_clock_ns();
        next(bench, it);
        int found = driver->event_record(it->ready, it->gpu.stream);
        if (!found)
            found = driver->event_synchronize(it->ready);
        samples_add(&it->others, os_clock_ns() - from);
        gpu_check(&it->gpu, found, "waiting for a batch");
    }
    spread_add(&it->ready_us, &it->others, 1000);
}

/* Makes the producer's and the consumer's calls for a batch. */
static void enqueue_by_hand(struct device_loader *it)
{
    const struct cuda_driver *driver = it->gpu.driver;
    static const char doing[] = "enqueueing a batch by hand";
    gpu_check(&it->gpu, driver->stream_wait_event(it->copies, it->expanded, 0), doing);
    gpu_check(&it->gpu, driver->copy_to_device(it->twin, it->pinned, it->slot_bytes, it->copies), doing);
    gpu_check(&it->gpu, driver->event_record(it->copied, it->copies), doing);
    gpu_check(&it->gpu, driver->stream_wait_event(it->gpu.stream, it->copied, 0), doing);
    gpu_launch_spin(&it->gpu, &(struct gpu_spin){it->word, 0});
    gpu_check(&it->gpu, driver->event_record(it->expanded, it->gpu.stream), doing);
}

static void enqueue_repeat(struct device_loader *it)
{
    samples_clear(&it->others);
    for (int i = 0; i < 40 && !bench_stopped(); i++) {
        for (int j = 0; j < ENQUEUED; j++) {
            const uint64_t from = os_clock_ns();
            enqueue_by_hand(it);
            samples_add(&it->others, os_clock_ns() - from);
        }
        gpu_synchronize(&it->gpu);
    }
    spread_add(&it->enqueue, &it->others, 1000);
}

/* Measures the opening of another loader. The context and the kernel exist already, so opening consists of pinning the
 * ring and allocating its device twin. */
static void open_repeat(struct bench *bench, struct device_loader *it)
{
    struct reader other = {.loader = NULL};
    const uint64_t started = os_clock_ns();
    device_reader_open(bench, &it->gpu, it->run, OPEN_BYTES, &other);
    series_add(&it->open_ms, (double)(os_clock_ns() - started) / 1e6);
    tokmap_loader_close(other.loader);
}

/* ---- the case ---- */

static void report(struct bench *bench, const struct device_loader *it, const struct tokmap_loader_device *device)
{
    bench_result(bench, "tokens_per_s", "tokens/s", &it->rate, NULL);
    bench_spread(bench, "next", "us", &it->next, &it->launch);
    bench_result(bench, "next_over_launch_us", "us", &it->over_launch, NULL);
    bench_spread(bench, "enqueue", "us", &it->enqueue, NULL);
    bench_spread(bench, "ready", "us", &it->ready_us, NULL);
    bench_result(bench, "not_ready", "share", &it->not_ready, NULL);
    bench_value(bench, "waits", "calls", (double)it->waits, (double)it->batches);
    bench_value(bench, "late_copies", "calls", (double)it->late_copies, (double)it->batches);
    loader_calls_report(bench, &it->counted);
    bench_result(bench, "open_64mib_ms", "ms", &it->open_ms, NULL);
    first_opening_report(bench, &it->first);
    bench_value(bench, "kernel", "0|1", (double)device->kernel, (double)NAN);
}

/* Measures batches delivered to a GPU. Its results have the case name "device_loader". */
static int run(struct bench *bench)
{
    static struct device_loader it;
    struct tokmap_loader_device device = TOKMAP_LOADER_DEVICE_INIT;
    if (bench->options.child)
        return first_opening_child(bench);
    bench->name = "device_loader";
    open_all(bench, &it);
    if (tokmap_loader_device(it.reader.loader, &device))
        return CLI_FAILED;
    if (!device.kernel)
        bench_say(bench, "the host expands the batches: %s", device.reason);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 7), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats)) {
        flat_out_repeat(bench, &it, repeats.counts);
        if (!repeats.counts)
            continue;
        paced_repeat(bench, &it);
        ready_repeat(bench, &it);
        enqueue_repeat(&it);
        open_repeat(bench, &it);
    }
    close_all(&it);
    first_opening_measure(bench, &it.first);
    report(bench, &it, &device);
    return CLI_DONE;
}

const struct bench_case case_loader_device = {"loader", NULL, .run = run};
