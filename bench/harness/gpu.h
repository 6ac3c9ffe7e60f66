/*
 * gpu.h - a GPU as the cases use it: the driver's table, the primary context current on the calling thread, the kernels,
 * and the few calls that every case makes.
 *
 * A function that returns an int gives CLI_DONE, or CLI_FAILED after a message, unless it says otherwise.
 */
#ifndef TOKMAP_BENCH_HARNESS_GPU_H
#define TOKMAP_BENCH_HARNESS_GPU_H

#include "gpu_kernels.h"
#include "harness.h"
#include "cuda/cuda_device.h"
#include "staging/expand_arguments.h"

struct gpu {
    struct bench *bench;
    struct cuda_device device;
    struct cuda_entered entered;
    const struct cuda_driver *driver;
    bool open;
    char name[16]; /* "cuda:0" */
    int processors;
    struct CUmod_st *module, *expand_module;
    struct CUfunc_st *gemm, *spin, *checksum;
    struct CUfunc_st *expand; /* the library's own */
    struct CUstream_st *stream;
};

/* The device that --device names, else the first. Where there is none the message says "no GPU" and why. */
int gpu_open(struct bench *bench, struct gpu *gpu);
/* The reason in an error of ERROR_NO_DEVICE. */
const char *gpu_reason(const struct tokmap_error *error);
/* Waits for what is enqueued on the stream. */
void gpu_close(struct gpu *gpu);

/* Says what failed in the driver; returns CLI_FAILED, or CLI_DONE where result is 0. */
int gpu_check(struct gpu *gpu, int result, const char *doing);

int gpu_memory_new(struct gpu *gpu, uint64_t bytes, uint64_t *address);
/* Accepts 0. Nothing that uses it may be under way. */
void gpu_memory_free(struct gpu *gpu, uint64_t *address);

/* Waits for the stream. */
int gpu_synchronize(struct gpu *gpu);

/* These return the driver's result. */
int gpu_launch(struct gpu *gpu, struct CUfunc_st *kernel, uint32_t blocks, uint32_t block, void *arguments);
int gpu_launch_gemm(struct gpu *gpu, const struct gpu_gemm *work);
int gpu_launch_spin(struct gpu *gpu, const struct gpu_spin *work);
int gpu_launch_checksum(struct gpu *gpu, const struct gpu_checksum *work);
int gpu_launch_expand(struct gpu *gpu, const struct expand_arguments *work);

/* A pair of timed events around something on the gpu's stream. */
struct gpu_timer {
    struct CUevent_st *from, *to;
};
int gpu_timer_new(struct gpu *gpu, struct gpu_timer *timer);
void gpu_timer_free(struct gpu *gpu, struct gpu_timer *timer);
/* These two return the driver's result. */
int gpu_timer_start(struct gpu *gpu, struct gpu_timer *timer);
int gpu_timer_stop(struct gpu *gpu, struct gpu_timer *timer);
/* Waits for the stop. */
int gpu_timer_read(struct gpu *gpu, struct gpu_timer *timer, double *ms);

#endif
