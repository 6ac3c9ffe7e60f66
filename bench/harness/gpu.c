/* SPDX-License-Identifier: MIT */
/* gpu.c - see gpu.h. */
#include "gpu.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "common/error.h"
#include "gpu_kernels_ptx.h"
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
