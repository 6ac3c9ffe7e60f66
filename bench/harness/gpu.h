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

/* Begins on a driver that no other thread uses yet. The calling thread is the consumer, all others are producers.
 * driver_calls_end() restores the table, at a time when no other thread uses the driver. */
void driver_calls_begin(struct bench *bench, const struct cuda_driver *driver);
void driver_calls_end(void);

/* Counts from now on, beginning at zero, or does not count any more. The consumer's calls count only between
 * driver_calls_inside(true) and driver_calls_inside(false), so that the calls of the benchmark itself do not. */
void driver_calls_count(bool count);
void driver_calls_inside(bool inside);

/* Fills in what was counted. To be called once the other threads make no more calls. */
void driver_calls_read(struct driver_calls *consumer, struct driver_calls *producer);

#endif
