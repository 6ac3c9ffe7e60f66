/* SPDX-License-Identifier: MIT */
/*
 * gpu.h - a GPU as the cases use it: the driver's function table, the primary context (current on the calling thread),
 * a stream, the kernels, and the calls that every case makes.
 *
 * A failure ends the program with a message (harness.h). For a call of the driver, pass its result to gpu_check(). Only
 * the thread that called gpu_open() may call these functions.
 */
#ifndef TOKMAP_BENCH_HARNESS_GPU_H
#define TOKMAP_BENCH_HARNESS_GPU_H

#include "cuda/cuda_driver.h"
#include "cuda/cuda_kernel.h"
#include "gpu_kernels.h"
#include "harness.h"
#include "staging/expand_arguments.h"

struct gpu {
    struct bench *bench;
    struct cuda_device device;
    struct cuda_entered entered;
    const struct cuda_driver *driver;
    bool open;
    char name[16];  /* "cuda:0" */
    int processors; /* multiprocessors */
    struct CUmod_st *module;
    struct CUfunc_st *gemm, *spin, *checksum; /* the benchmark's kernels */
    const struct cuda_kernel *expand;         /* the library's kernel, or NULL */
    struct CUstream_st *stream;
};

/* Opens the device that --device names, or the first one. If it cannot be used, the message says "no GPU", the
 * reason, and what to do. */
void gpu_open(struct bench *bench, struct gpu *gpu);
/* Loads the library's kernel, which gpu_launch_expand() needs. A loader shares it from then on, so a case that measures
 * how a loader loads it does not call this. Call it once after gpu_open(). If no form of the kernel can be loaded, the
 * message has the driver's reason. */
void gpu_take_expand(struct gpu *gpu);
/* Waits for the work on the stream, then releases everything. Accepts a gpu that is not open. */
void gpu_close(struct gpu *gpu);
/* Returns the reason inside an error with the status ERROR_NO_DEVICE; it is valid as long as the error. */
const char *gpu_reason(const struct tokmap_error *error);

/* Ends the program with a message that says what failed ("launching a kernel") if the driver's result is not 0. */
void gpu_check(struct gpu *gpu, int result, const char *doing);

/* Allocates device memory and enqueues on the stream that it is set to zero. Returns its address. */
uint64_t gpu_memory_new(struct gpu *gpu, uint64_t bytes);
/* Frees device memory, which no work in progress may use, and sets *address to 0. Accepts the address 0. */
void gpu_memory_free(struct gpu *gpu, uint64_t *address);

/* Waits for the work on the stream. */
void gpu_synchronize(struct gpu *gpu);

/* Launch a kernel on the stream. */
void gpu_launch_gemm(struct gpu *gpu, const struct gpu_gemm *work);
void gpu_launch_spin(struct gpu *gpu, const struct gpu_spin *work);
void gpu_launch_checksum(struct gpu *gpu, const struct gpu_checksum *work);
void gpu_launch_expand(struct gpu *gpu, const struct expand_arguments *work);

/* A pair of timed events around some work on the stream. */
struct gpu_timer {
    struct CUevent_st *from, *to;
};

void gpu_timer_new(struct gpu *gpu, struct gpu_timer *timer);
void gpu_timer_free(struct gpu *gpu, struct gpu_timer *timer);
/* Record the events. */
void gpu_timer_start(struct gpu *gpu, struct gpu_timer *timer);
void gpu_timer_stop(struct gpu *gpu, struct gpu_timer *timer);
/* Waits until the GPU has reached the stop. Returns the milliseconds since the start. */
double gpu_timer_read(struct gpu *gpu, struct gpu_timer *timer);

#endif
