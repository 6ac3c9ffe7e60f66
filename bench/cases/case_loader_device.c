/* SPDX-License-Identifier: MIT */
/*
 * case_loader_device.c - batches delivered to a GPU: what a batch costs the host, how long it takes to arrive, how
 * often it is not ready, and how long opening takes.
 *
 * tokmap_cuda_next() enqueues a wait, a kernel launch and an event record. The cost of a launch alone is measured
 * beside it with a kernel that does nothing. The whole cost of a batch includes the calls of the producer thread, which
 * cannot be timed from outside because the thread also gathers. It is measured in two ways. One counts and times the
 * loader's own calls, in both threads (case_loader_calls.c). The other makes the calls that a batch cannot do without,
 * in the same order, on streams and events that belong to this case.
 */
#include "case_loader_device.h"

#include <math.h>
#include <string.h>

#include "case_loader_calls.h"
#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/dataset_make.h"
#include "harness/driver_calls.h"
#include "harness/gpu.h"
#include "harness/page_cache.h"
#include "harness/reader.h"
#include "platform/os.h"
#include "tokmap/cuda.h"

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

static enum tokmap_status next(struct device_loader *it)
{
    return tokmap_cuda_next(it->reader.loader, &it->reader.out, it->gpu.stream, &it->reader.batch, &it->reader.error);
}

static int by_hand_open(struct device_loader *it)
{
    struct gpu *gpu = &it->gpu;
    const struct cuda_driver *driver = gpu->driver;
    int result = driver->stream_create(&it->copies, CUDA_STREAM_NON_BLOCKING);
    if (!result)
        result = driver->event_create(&it->copied, CUDA_EVENT_BLOCKING_SYNC | CUDA_EVENT_DISABLE_TIMING);
    if (!result)
        result = driver->event_create(&it->expanded, CUDA_EVENT_BLOCKING_SYNC | CUDA_EVENT_DISABLE_TIMING);
    if (!result)
        result = driver->event_create(&it->ready, CUDA_EVENT_DISABLE_TIMING);
    if (!result)
        result = driver->host_alloc(&it->pinned, it->slot_bytes, CUDA_HOST_PORTABLE);
    if (result)
        return gpu_check(gpu, result, "creating streams and events");
    memset(it->pinned, 1, it->slot_bytes);
    return gpu_memory_new(gpu, it->slot_bytes, &it->twin);
}

static int open_all(struct bench *bench, struct device_loader *it)
{
    const char *name = NULL;
    const uint64_t rows = bench->options.rows, seq_len = bench->options.seq_len;
    int result = gpu_open(bench, &it->gpu);
    if (!result)
        result = dataset_name(bench, &name);
    if (!result)
        result = run_make(bench, name, TOKMAP_READ_AUTO, 1, TOKMAP_FOREVER, &it->run);
    struct tokmap_source_info source = {.size = sizeof source};
    struct tokmap_dataset_info info = {.size = sizeof info};
    if (!result)
        result = run_get_info(bench, it->run, &source, &info);
    if (!result)
        result = page_cache_warm(bench, source.dataset);
    it->slot_bytes = rows * round_up((seq_len + 1) * info.width, 64);
    if (!result && (!samples_new(&it->calls, 1 << 20) || !samples_new(&it->launches, 1 << 20) ||
                    !samples_new(&it->others, 1 << 20)))
        result = bench_no_memory(bench);
    if (!result)
        result = gpu_memory_new(&it->gpu, rows * seq_len * 4, &it->inputs);
    if (!result)
        result = gpu_memory_new(&it->gpu, rows * seq_len * 4, &it->targets);
    if (!result)
        result = gpu_memory_new(&it->gpu, 8, &it->word);
    if (!result)
        result = by_hand_open(it);
    if (!result)
        result = driver_calls_begin(bench, it->gpu.driver);
    if (!result)
        result = device_reader_open(bench, &it->gpu, it->run, 0, &it->reader);
    it->reader.out.inputs = (void *)(uintptr_t)it->inputs;
    it->reader.out.targets = (void *)(uintptr_t)it->targets;
    if (!result)
        result = loader_calls_measure(bench, &it->gpu, &it->reader, &it->counted);
    return result ? result : gpu_synchronize(&it->gpu);
}

static void close_all(struct device_loader *it)
{
    const struct cuda_driver *driver = it->gpu.driver;
    if (it->gpu.open) {
        (void)driver->stream_synchronize(it->gpu.stream);
        tokmap_loader_close(it->reader.loader);
        driver_calls_end();
        if (it->copies) {
            (void)driver->stream_synchronize(it->copies);
            (void)driver->stream_destroy(it->copies);
        }
        struct CUevent_st *const events[] = {it->copied, it->expanded, it->ready};
        for (size_t i = 0; i < 3; i++)
            if (events[i])
                (void)driver->event_destroy(events[i]);
        if (it->pinned)
            (void)driver->host_free(it->pinned);
        uint64_t *const memory[] = {&it->twin, &it->inputs, &it->targets, &it->word};
        for (size_t i = 0; i < 4; i++)
            gpu_memory_free(&it->gpu, memory[i]);
        gpu_close(&it->gpu);
    }
    tokmap_run_close(it->run);
    samples_free(&it->calls);
    samples_free(&it->launches);
    samples_free(&it->others);
}

/* ---- repeats ---- */

static int flat_out_repeat(struct bench *bench, struct device_loader *it, bool counts)
{
    const uint64_t length = (uint64_t)(bench_seconds(bench, 0.4) * 1e9), started = os_clock_ns();
    uint64_t batches = 0;
    while ((os_clock_ns() - started < length || !batches) && !bench_stopped())
        for (int i = 0; i < 16; i++, batches++)
            if (next(it))
                return bench_failed(bench, &it->reader.error);
    int result = gpu_synchronize(&it->gpu);
    const uint64_t spent = os_clock_ns() - started;
    it->batch_ns = spent / batches;
    if (counts)
        series_add(&it->rate, (double)(batches * it->reader.batch.tokens) / (double)spent * 1e9);
    return result;
}

/* A consumer at half the rate that the loader reaches. */
static int paced_repeat(struct bench *bench, struct device_loader *it)
{
    const uint64_t length = (uint64_t)(bench_seconds(bench, 1) * 1e9), period = max64(2 * it->batch_ns, PACED_NS_LEAST);
    struct tokmap_stats before, after;
    int result = device_reader_idle(bench, &it->gpu, &it->reader);
    samples_clear(&it->calls);
    samples_clear(&it->launches);
    reader_stats(&it->reader, &before);
    uint64_t due = os_clock_ns();
    for (const uint64_t end = due + length; !result && due < end && !bench_stopped();) {
        const uint64_t from = os_clock_ns();
        if (next(it))
            return bench_failed(bench, &it->reader.error);
        const uint64_t between = os_clock_ns();
        result = gpu_check(&it->gpu, gpu_launch_spin(&it->gpu, &(struct gpu_spin){it->word, 0}), "launching a kernel");
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
    return result;
}

/* Times one batch at a time from the call until the outputs are written. */
static int ready_repeat(struct bench *bench, struct device_loader *it)
{
    const struct cuda_driver *driver = it->gpu.driver;
    int result = device_reader_idle(bench, &it->gpu, &it->reader);
    samples_clear(&it->others);
    for (int i = 0; i < 200 && !result && !bench_stopped(); i++) {
        const uint64_t from = os_clock_ns();
        if (next(it))
            return bench_failed(bench, &it->reader.error);
        int found = driver->event_record(it->ready, it->gpu.stream);
        if (!found)
            found = driver->event_synchronize(it->ready);
        samples_add(&it->others, os_clock_ns() - from);
        result = gpu_check(&it->gpu, found, "waiting for a batch");
    }
    spread_add(&it->ready_us, &it->others, 1000);
    return result;
}

/* Makes the producer's and the consumer's calls for a batch. Returns the driver's result. */
static int enqueue_by_hand(struct device_loader *it)
{
    const struct cuda_driver *driver = it->gpu.driver;
    int result = driver->stream_wait_event(it->copies, it->expanded, 0);
    if (!result)
        result = driver->copy_to_device(it->twin, it->pinned, it->slot_bytes, it->copies);
    if (!result)
        result = driver->event_record(it->copied, it->copies);
    if (!result)
        result = driver->stream_wait_event(it->gpu.stream, it->copied, 0);
    if (!result)
        result = gpu_launch_spin(&it->gpu, &(struct gpu_spin){it->word, 0});
    if (!result)
        result = driver->event_record(it->expanded, it->gpu.stream);
    return result;
}

static int enqueue_repeat(struct bench *bench, struct device_loader *it)
{
    int result = CLI_DONE;
    samples_clear(&it->others);
    for (int i = 0; i < 40 && !result && !bench_stopped(); i++) {
        for (int j = 0; j < ENQUEUED && !result; j++) {
            const uint64_t from = os_clock_ns();
            result = gpu_check(&it->gpu, enqueue_by_hand(it), "enqueueing a batch by hand");
            samples_add(&it->others, os_clock_ns() - from);
        }
        if (!result)
            result = gpu_synchronize(&it->gpu);
    }
    spread_add(&it->enqueue, &it->others, 1000);
    return result;
}

/* The context and the kernel exist already, so opening consists of pinning the ring and allocating its device twin. */
static int open_repeat(struct bench *bench, struct device_loader *it)
{
    struct reader other;
    const uint64_t started = os_clock_ns();
    int result = device_reader_open(bench, &it->gpu, it->run, OPEN_BYTES, &other);
    if (!result)
        series_add(&it->open_ms, (double)(os_clock_ns() - started) / 1e6);
    tokmap_loader_close(other.loader);
    return result;
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

int loader_device(struct bench *bench)
{
    static struct device_loader it;
    struct tokmap_loader_device device = {.size = sizeof device};
    bench->name = "device_loader";
    int result = open_all(bench, &it);
    if (!result && tokmap_loader_device(it.reader.loader, &device))
        result = CLI_FAILED;
    if (!result && !device.kernel)
        bench_say(bench, "the host expands the batches: %s", device.reason);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 7), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats, result)) {
        result = flat_out_repeat(bench, &it, repeats.counts);
        if (!result && repeats.counts)
            result = paced_repeat(bench, &it);
        if (!result && repeats.counts)
            result = ready_repeat(bench, &it);
        if (!result && repeats.counts)
            result = enqueue_repeat(bench, &it);
        if (!result && repeats.counts)
            result = open_repeat(bench, &it);
    }
    close_all(&it);
    if (!result && !bench_stopped())
        result = first_opening_measure(bench, &it.first);
    if (result || bench_stopped())
        return CLI_FAILED;
    report(bench, &it, &device);
    return CLI_DONE;
}
