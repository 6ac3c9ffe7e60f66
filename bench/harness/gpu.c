/* SPDX-License-Identifier: MIT */
/* gpu.c - see gpu.h. */
#include "gpu.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "common/error.h"
#include "gpu_kernels_ptx.h"
#include "platform/os.h"
#include "tokmap/cuda.h"

void gpu_check(struct gpu *gpu, int result, const char *doing)
{
    if (!result)
        return;
    (void)cuda_driver_error(gpu->driver, TOKMAP_ERROR_DEVICE, result, &gpu->bench->error, doing);
    bench_failed(gpu->bench, &gpu->bench->error);
}

static void load_kernels(struct gpu *gpu)
{
    const struct cuda_driver *driver = gpu->driver;
    int result = driver->module_load(&gpu->module, gpu_kernels_fatbin, 0, NULL, NULL);
    if (result) /* there is no machine code for this GPU, or the driver is older */
        result = driver->module_load(&gpu->module, gpu_kernels_ptx, 0, NULL, NULL);
    if (!result)
        result = driver->module_get_function(&gpu->gemm, gpu->module, "gpu_gemm");
    if (!result)
        result = driver->module_get_function(&gpu->spin, gpu->module, "gpu_spin");
    if (!result)
        result = driver->module_get_function(&gpu->checksum, gpu->module, "gpu_checksum");
    gpu_check(gpu, result, "loading the benchmark's kernels");
}

void gpu_take_expand(struct gpu *gpu)
{
    char reason[CUDA_KERNEL_REASON];
    assert(gpu->open && !gpu->expand);
    gpu->expand = cuda_kernel_take(&gpu->device, reason);
    if (gpu->expand)
        return;
    cli_say(gpu->bench->program, "%s", reason);
    bench_end(gpu->bench, CLI_FAILED);
}

const char *gpu_reason(const struct tokmap_error *error)
{
    static const char head[] = "no usable GPU: ";
    return error->message + (strncmp(error->message, head, sizeof head - 1) ? 0 : sizeof head - 1);
}

void gpu_open(struct bench *bench, struct gpu *gpu)
{
    static bool said; /* a case can open the GPU more than once */
    struct tokmap_error error = {0};
    memset(gpu, 0, sizeof *gpu);
    gpu->bench = bench;
    (void)snprintf(gpu->name, sizeof gpu->name, "cuda:%u",
                   (unsigned)bench->options.device); /* 0 unless --device is given */
    if (cuda_device_open(&gpu->device, gpu->name, &error)) {
        cli_say(bench->program,
                "no GPU: %s; this case measures a GPU: run it on a machine with one, where nvidia-smi lists it",
                gpu_reason(&error));
        bench_end(bench, CLI_FAILED);
    }
    gpu->driver = gpu->device.driver;
    gpu_check(gpu, cuda_enter(&gpu->device, &gpu->entered), "entering the GPU's context");
    gpu->open = true;
    struct tokmap_cuda_device_info info = TOKMAP_CUDA_DEVICE_INFO_INIT;
    int result = gpu->driver->device_get_attribute(&gpu->processors, CUDA_DEVICE_MULTIPROCESSORS, gpu->device.handle);
    if (!result)
        result = gpu->driver->stream_create(&gpu->stream, CUDA_STREAM_NON_BLOCKING);
    gpu_check(gpu, result, "creating a stream");
    if (!bench->options.json && !bench->options.child && !said &&
        !tokmap_cuda_device(gpu->device.ordinal, &info, &error)) {
        cli_print("%s: %s, capability %d.%d, driver for CUDA %d.%d\n", gpu->name, info.name, info.capability_major,
                  info.capability_minor, gpu->driver->version / 1000, gpu->driver->version % 1000 / 10);
        said = true;
    }
    load_kernels(gpu);
}

void gpu_close(struct gpu *gpu)
{
    if (!gpu->open)
        return;
    if (gpu->stream) {
        (void)gpu->driver->stream_synchronize(gpu->stream);
        (void)gpu->driver->stream_destroy(gpu->stream);
    }
    if (gpu->module)
        (void)gpu->driver->module_unload(gpu->module);
    cuda_kernel_release(gpu->expand, false);
    cuda_leave(&gpu->device, &gpu->entered);
    cuda_device_close(&gpu->device);
    gpu->open = false;
}

uint64_t gpu_memory_new(struct gpu *gpu, uint64_t bytes)
{
    uint64_t address = 0;
    assert(gpu->open && bytes);
    int result = gpu->driver->mem_alloc(&address, bytes);
    if (!result)
        result = gpu->driver->memset_bytes(address, 0, bytes, gpu->stream);
    gpu_check(gpu, result, "allocating device memory");
    return address;
}

void gpu_memory_free(struct gpu *gpu, uint64_t *address)
{
    if (*address)
        (void)gpu->driver->mem_free(*address);
    *address = 0;
}

void gpu_synchronize(struct gpu *gpu)
{
    gpu_check(gpu, gpu->driver->stream_synchronize(gpu->stream), "waiting for the GPU");
}

static void launch(struct gpu *gpu, struct CUfunc_st *kernel, uint32_t blocks, uint32_t block, void *arguments)
{
    void *parameters[] = {arguments};
    gpu_check(gpu, gpu->driver->launch_kernel(kernel, blocks, 1, 1, block, 1, 1, 0, gpu->stream, parameters, NULL),
              "launching a kernel");
}

void gpu_launch_gemm(struct gpu *gpu, const struct gpu_gemm *work)
{
    struct gpu_gemm arguments = *work;
    assert(work->size % GEMM_TILE == 0);
    const uint64_t across = work->size / GEMM_TILE;
    launch(gpu, gpu->gemm, (uint32_t)((across * across + GPU_BLOCK - 1) / GPU_BLOCK), GPU_BLOCK, &arguments);
}

void gpu_launch_spin(struct gpu *gpu, const struct gpu_spin *work)
{
    struct gpu_spin arguments = *work;
    launch(gpu, gpu->spin, 1, 1, &arguments);
}

void gpu_launch_checksum(struct gpu *gpu, const struct gpu_checksum *work)
{
    struct gpu_checksum arguments = *work;
    assert(work->word_bytes == 2 || work->word_bytes == 4);
    const uint64_t blocks = work->count / GPU_BLOCK / 4 + 1, most = (uint64_t)gpu->processors * 4;
    launch(gpu, gpu->checksum, (uint32_t)(blocks < most ? blocks : most), GPU_BLOCK, &arguments);
}

void gpu_launch_expand(struct gpu *gpu, const struct expand_arguments *work)
{
    struct expand_arguments arguments = *work;
    assert(gpu->expand);
    launch(gpu, gpu->expand->function, expand_blocks(work, gpu->expand->held), EXPAND_BLOCK, &arguments);
}

void gpu_timer_new(struct gpu *gpu, struct gpu_timer *timer)
{
    gpu_check(gpu, gpu->driver->event_create(&timer->from, 0), "creating events");
    gpu_check(gpu, gpu->driver->event_create(&timer->to, 0), "creating events");
}

void gpu_timer_free(struct gpu *gpu, struct gpu_timer *timer)
{
    if (timer->from)
        (void)gpu->driver->event_destroy(timer->from);
    if (timer->to)
        (void)gpu->driver->event_destroy(timer->to);
    memset(timer, 0, sizeof *timer);
}

void gpu_timer_start(struct gpu *gpu, struct gpu_timer *timer)
{
    gpu_check(gpu, gpu->driver->event_record(timer->from, gpu->stream), "recording an event");
}

void gpu_timer_stop(struct gpu *gpu, struct gpu_timer *timer)
{
    gpu_check(gpu, gpu->driver->event_record(timer->to, gpu->stream), "recording an event");
}

double gpu_timer_read(struct gpu *gpu, struct gpu_timer *timer)
{
    float found = 0;
    int result = gpu->driver->event_synchronize(timer->to);
    if (!result)
        result = gpu->driver->event_elapsed_time(&found, timer->from, timer->to);
    gpu_check(gpu, result, "timing the GPU");
    return (double)found;
}

/* ==== calls of the driver, counted ==== */

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

enum { CONSUMER, PRODUCER, SIDES };
#define SAMPLES_MOST ((size_t)1 << 14)

static struct cuda_driver *table; /* NULL: driver_calls_begin() was not called */
static struct cuda_driver real;   /* as the table was */
static uint64_t counts[SIDES][CALLS];
static struct samples samples[SIDES][CALLS];
static int counting;                              /* atomic */
static __thread bool is_consumer, inside_of_next; /* of a thread */

/* Returns the side for which a call of this thread counts, or SIDES. */
static int side_of_call(void)
{
    if (!__atomic_load_n(&counting, __ATOMIC_ACQUIRE) || (is_consumer && !inside_of_next))
        return SIDES;
    return is_consumer ? CONSUMER : PRODUCER;
}

static void note(int side, int call, uint64_t ns)
{
    counts[side][call]++;
    samples_add(&samples[side][call], ns);
}

#define COUNTED_CALL(waits, field, arguments, passed)                                                                  \
    static int counted_##field arguments                                                                               \
    {                                                                                                                  \
        const int side = side_of_call();                                                                               \
        if (side == SIDES)                                                                                             \
            return real.field passed;                                                                                  \
        const uint64_t began = os_clock_ns();                                                                          \
        const int result = real.field passed;                                                                          \
        note(side, CALL_##field, os_clock_ns() - began);                                                               \
        return result;                                                                                                 \
    }
COUNTED_CALLS(COUNTED_CALL)
#undef COUNTED_CALL

void driver_calls_begin(struct bench *bench, const struct cuda_driver *driver)
{
    assert(!table);
    is_consumer = true;
    table = (struct cuda_driver *)(uintptr_t)driver;
    real = *table;
    for (int side = 0; side < SIDES; side++)
        for (int call = 0; call < CALLS; call++)
            bench_samples_new(bench, &samples[side][call], SAMPLES_MOST);
#define REPLACE_CALL(waits, field, arguments, passed) table->field = real.field ? counted_##field : NULL;
    COUNTED_CALLS(REPLACE_CALL)
#undef REPLACE_CALL
}

void driver_calls_end(void)
{
    if (!table)
        return;
    *table = real;
    table = NULL;
    is_consumer = false;
    driver_calls_count(false);
    for (int side = 0; side < SIDES; side++)
        for (int call = 0; call < CALLS; call++)
            samples_free(&samples[side][call]);
}

void driver_calls_count(bool count)
{
    if (count) {
        memset(counts, 0, sizeof counts);
        for (int side = 0; side < SIDES; side++)
            for (int call = 0; call < CALLS; call++)
                samples_clear(&samples[side][call]);
    }
    __atomic_store_n(&counting, count, __ATOMIC_RELEASE);
}

void driver_calls_inside(bool inside)
{
    inside_of_next = inside;
}

/* Returns the time between two looks at the clock, which is a part of every sample; 0 without memory. */
static double clock_ns(void)
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

static void read_side(int side, double clock, struct driver_calls *found)
{
    *found = (struct driver_calls){.calls = 0};
    for (int call = 0; call < CALLS; call++) {
        const uint64_t count = counts[side][call];
        const double ns = count ? samples_at(&samples[side][call], 0.5) - clock : 0;
        found->calls += count;
        found->waiting += call_waits[call] == 1 || (call_waits[call] && side == CONSUMER) ? count : 0;
        found->us += ns > 0 ? ns * (double)count / 1000 : 0;
    }
}

void driver_calls_read(struct driver_calls *consumer, struct driver_calls *producer)
{
    const double clock = clock_ns();
    read_side(CONSUMER, clock, consumer);
    read_side(PRODUCER, clock, producer);
}
