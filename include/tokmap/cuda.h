/* SPDX-License-Identifier: MIT */
/*
 * cuda.h - loading to a GPU: batches arrive in GPU memory of the program, in order with the program's own stream
 *
 * A loader whose option `device` names a GPU works as one on the host does (see tokmap.h). Two things differ: `out`
 * points to memory of that GPU, and tokmap_loader_next() takes the CUDA stream that will read it. tokmap_cuda_next() is
 * the same function with the stream's type.
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_loader_options o = TOKMAP_LOADER_OPTIONS_INIT;
 *     o.device = "cuda:0";
 *     o.rows = 16;
 *     if (tokmap_loader_open(&loader, run, &o, &e))
 *         fatal(&e);
 *     struct tokmap_out out = TOKMAP_OUT_INIT;
 *     out.inputs = inputs;                            // GPU memory of the program, int32_t[16][seq_len]
 *     out.targets = targets;
 *     struct tokmap_batch b = TOKMAP_BATCH_INIT;
 *     enum tokmap_status status;
 *     while ((status = tokmap_cuda_next(loader, &out, stream, &b, &e)) == TOKMAP_OK)
 *         if (b.count)
 *             train(inputs, targets, b.count);        // enqueues its work on the same stream
 *     if (status != TOKMAP_END)
 *         fatal(&e);
 *     tokmap_loader_close(loader);
 * @endcode
 *
 * next() enqueues its work on the stream and returns. It does not wait for the GPU. The order of the stream does the
 * rest: work that the program enqueued before the call still sees the old contents of the outputs, and work that it
 * enqueues after the call sees the new batch. So there is nothing to release, no buffer changes while it is read, and
 * the outputs may be the same in every call.
 *
 * As in tokmap.h, a test compiles the lines between @code and @endcode. They use names of the program around them:
 * fatal() prints an error and exits; train() enqueues a training step on the program's stream; inputs and targets are
 * GPU memory; stream, run, and loader are open.
 *
 *
 * Caveats for operators
 *
 *   Driver. The library does not link CUDA. It opens the driver (libcuda.so.1) when a function or a loader needs a GPU
 *   for the first time, and never closes it. Without a driver or without a GPU, that call returns
 *   TOKMAP_ERROR_NO_DEVICE with the reason, and everything on the host works. The environment variable
 *   TOKMAP_CUDA_DRIVER is the path of a library to open instead; tests use it. It is ignored in set-user-id programs.
 *
 *   Context. All work happens in the primary context of the device, which the CUDA runtime and PyTorch use, too. The
 *   context that is current on the calling thread is the same after each call as before. A program that resets the
 *   device (cudaDeviceReset) should close its loaders and free its streams and memory of this library first. A loader
 *   that is still open then can only be closed, which makes no call that uses the lost context. Streams and memory can
 *   only be freed, which leaves alone whatever has the same handle or address by then. Drivers before CUDA 12.0 cannot
 *   say whether the device was reset: with them, all of these must be gone before.
 *
 *   Kernel. One kernel expands the batches of all loaders on a device. The library contains it as machine code for
 *   capability 8, 9, and 10, which drivers for CUDA 13 and later load at once. Older drivers and drivers of other GPUs
 *   compile it when the first loader is opened, in 0.1 to 0.3 s, and keep the result in a cache. A driver that accepts
 *   neither form leaves the work to the host: see tokmap_loader_device(). With drivers before CUDA 12.0, each loader
 *   has a kernel of its own.
 *
 *   Memory. A loader holds page-locked host memory, which the operating system cannot swap out, and GPU memory of the
 *   same size: see ring_bytes in tokmap.h. Where the host expands the batches, it holds more of the former and none of
 *   the latter. tokmap_loader_device() reports both. They are allocated when the loader is opened, and again by
 *   tokmap_loader_repartition() and reload(); next() allocates nothing.
 *
 *   Fork. A process that was forked after CUDA was first used cannot use CUDA; that is a rule of the driver. Functions
 *   that open a device return TOKMAP_ERROR_NO_DEVICE in it, and tokmap_loader_next() of a loader that the parent opened
 *   returns TOKMAP_ERROR_ARGUMENT. Closing such a loader in the child is safe and does not touch the GPU or the
 *   page-locked memory.
 *
 *   Graphs. A CUDA graph of the training step can read the outputs, because their addresses may stay the same. Call
 *   next() before each launch of the graph. A call with a stream that is capturing is refused with
 *   TOKMAP_ERROR_ARGUMENT, because each launch of the graph would deliver the same batch again. So is one with the
 *   legacy default stream while a stream that waits for it is capturing. A loader does not disturb a capture on another
 *   stream.
 *
 *   Faults. After a kernel of the program has accessed invalid memory, every call of the driver in this process fails.
 *   The loader then returns TOKMAP_ERROR_DEVICE, although the fault is not its own.
 *
 *
 * Rules for all functions
 *
 *   - The rules of tokmap.h apply. Any thread may call any function here at any time, except that one thread at a time
 *     may call tokmap_cuda_next() of one loader.
 *   - `device` is "cuda:N" for GPU N, counted from 0 among the GPUs that the process may use (CUDA_VISIBLE_DEVICES). Or
 *     it is "cuda" for the GPU of the context that is current on the calling thread; without a context that is GPU 0.
 *   - A stream is a CUstream or cudaStream_t, which are both struct CUstream_st *. It must belong to the primary
 *     context of the device; a stream of a green context does, with drivers for CUDA 12.5 and later. NULL is the
 *     device's legacy default stream, also in a program that is compiled with --default-stream per-thread: such a
 *     program passes cudaStreamPerThread, whose value is 2.
 *   - After TOKMAP_ERROR_DEVICE, and after TOKMAP_ERROR_NO_DEVICE or TOKMAP_ERROR_MEMORY from the driver, error.device
 *     is the driver's result. In all other cases it is 0.
 *
 * What misuse does
 *
 *   - tokmap_cuda_next() checks the stream and the outputs. A stream of another device or context, an output in
 *     ordinary host memory or on another device, and an output that is not aligned to its elements are
 *     TOKMAP_ERROR_ARGUMENT. No batch is lost: the next call delivers it. Page-locked and managed memory, which the GPU
 *     can write, is accepted.
 *   - An address that has passed these checks is not checked again. So an output that was freed after an earlier call
 *     is not found: the kernel writes to whatever is at that address now, or faults.
 *   - A reader of the outputs on another stream than the one passed to next() is in no order with the loader. Use
 *     tokmap_cuda_stream_wait(), or an event, in both directions: before it reads, and before the next call.
 *   - batch.rows of a loader on a GPU points into page-locked memory, which the next call hands back to the producer. A
 *     copy from it that is only enqueued (cudaMemcpyAsync) races with that: wait for the copy before the next call, or
 *     request TOKMAP_ROWS.
 *   - A struct whose size is not set is TOKMAP_ERROR_ARGUMENT.
 */
#ifndef TOKMAP_CUDA_H
#define TOKMAP_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "loader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* No CUDA header is included: this is the type behind CUstream and cudaStream_t. */
struct CUstream_st;

/* ---------------------------------------------------------------- driver and devices --------------------------- */

/* The driver of this process.
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_cuda_info info = TOKMAP_CUDA_INFO_INIT;
 *     if (tokmap_cuda_probe(&info, &e)) {
 *         puts(e.message);                            // why no GPU can be used
 *     } else {
 *         for (int i = 0; i < info.devices; i++) {
 *             struct tokmap_cuda_device_info gpu = TOKMAP_CUDA_DEVICE_INFO_INIT;
 *             if (tokmap_cuda_device(i, &gpu, &e))
 *                 fatal(&e);
 *             printf("cuda:%d: %s, %" PRIu64 " MiB\n", i, gpu.name, gpu.memory >> 20);
 *         }
 *     }
 * @endcode
 */
struct tokmap_cuda_info {
    size_t size;
    int driver_version; /* newest CUDA version that the driver supports: 1000 * major + 10 * minor */
    int devices;        /* number of GPUs that this process may use, at least 1 */
    char path[256];     /* the file of the driver's library; the end is cut off if it is longer */
};
#define TOKMAP_CUDA_INFO_INIT TOKMAP_SIZED(struct tokmap_cuda_info)

/* Finds out whether there is a usable driver and at least one GPU, and fills *info. Creates no CUDA context.
 * Statuses: OK, ERROR_NO_DEVICE (the message says why: there is no driver library, it is a stub or too old, there is no
 * GPU, none is visible, or the process was forked), ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_cuda_probe(struct tokmap_cuda_info *info,
                                                                  struct tokmap_error *error);

/* One GPU. */
struct tokmap_cuda_device_info {
    size_t size;
    char name[128];                         /* for example "NVIDIA H100 80GB HBM3" */
    int capability_major, capability_minor; /* compute capability */
    int numa_node;                          /* the host's NUMA node nearest to the GPU; -1: unknown, or no NUMA */
    uint64_t memory;                        /* bytes of GPU memory */
};
#define TOKMAP_CUDA_DEVICE_INFO_INIT TOKMAP_SIZED(struct tokmap_cuda_device_info)

/* Describes a GPU in *info. Creates no CUDA context.
 *   device   number of the GPU, from 0 to tokmap_cuda_info.devices - 1
 * Statuses: OK, ERROR_NO_DEVICE (no GPU has this number, or as for tokmap_cuda_probe()), ERROR_DEVICE, ERROR_ARGUMENT,
 * ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_cuda_device(int device, struct tokmap_cuda_device_info *info,
                                                                   struct tokmap_error *error);

/* ---------------------------------------------------------------- loading --------------------------------------- */

/* tokmap_loader_next() with the stream's type; see there for all other arguments and for the statuses.
 *   stream   of the loader's GPU; NULL is the legacy default stream. Calls may pass different streams, but then the
 *            program must order its own use of the outputs between them. */
TOKMAP_MUST_CHECK static inline enum tokmap_status
tokmap_cuda_next(struct tokmap_loader *loader, const struct tokmap_out *out, struct CUstream_st *stream,
                 struct tokmap_batch *batch, struct tokmap_error *error)
{
    return tokmap_loader_next(loader, out, (void *)stream, batch, error);
}

/* How a loader delivers.
 *
 * @code
 *     struct tokmap_loader_device where = TOKMAP_LOADER_DEVICE_INIT;
 *     if (tokmap_loader_device(loader, &where))
 *         abort();
 *     if (where.device >= 0 && !where.kernel)
 *         printf("the host expands the batches: %s\n", where.reason);
 * @endcode
 */
struct tokmap_loader_device {
    size_t size;
    int device;            /* N of "cuda:N". -1: the loader delivers on the host; then numa_node is -1, the rest is 0 */
    int numa_node;         /* of the page-locked memory and the producer thread; -1: any node */
    int kernel;            /* 1: the GPU expands the batches. 0: the host does, which costs its time and sends every
                              field over the bus in its full width; see `reason` */
    uint64_t pinned_bytes; /* page-locked host memory */
    uint64_t device_bytes; /* GPU memory */
    char reason[256];      /* for which the GPU does not expand; "" if it does */
    int coherent;          /* 1: the GPU reads all memory of the host through the host's page tables, as in GH200 and
                              GB200, so it could read batches in place. Only reported: the loader copies them */
};
#define TOKMAP_LOADER_DEVICE_INIT TOKMAP_SIZED(struct tokmap_loader_device)

/* Fills *info. Statuses: OK, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_loader_device(const struct tokmap_loader *loader,
                                                                     struct tokmap_loader_device *info);

/* ---------------------------------------------------------------- memory and streams ---------------------------- */

/* The functions below are for programs that use neither the CUDA runtime nor a framework. They allocate outputs, read
 * them back, and create and order streams. What they create belongs to the device's primary context and can be used
 * with any CUDA function; it keeps the context alive until it is freed.
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct CUstream_st *own = NULL;
 *     void *memory = NULL;
 *     int32_t first[1024];
 *     if (tokmap_cuda_stream_new("cuda:0", &own, &e) || tokmap_cuda_memory_new("cuda:0", sizeof first, &memory, &e))
 *         fatal(&e);
 *     struct tokmap_out out = TOKMAP_OUT_INIT;
 *     out.inputs = memory;                            // the loader has fields = TOKMAP_INPUTS and rows of 1,024 tokens
 *     struct tokmap_batch b = TOKMAP_BATCH_INIT;
 *     if (tokmap_cuda_next(loader, &out, own, &b, &e) ||
 *         tokmap_cuda_memory_read("cuda:0", first, memory, sizeof first, own, &e))
 *         fatal(&e);
 *     printf("the first token is %" PRId32 "\n", first[0]);
 *     tokmap_cuda_memory_free("cuda:0", memory);
 *     tokmap_cuda_stream_free("cuda:0", own);
 * @endcode
 */

/* Allocates GPU memory. Its address is a multiple of 256, and its contents are undefined.
 *   bytes    at least 1
 *   memory   receives the address; free it with tokmap_cuda_memory_free()
 * Statuses: OK, ERROR_MEMORY (the GPU does not have that much free memory), ERROR_NO_DEVICE, ERROR_DEVICE,
 * ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_cuda_memory_new(const char *device, uint64_t bytes,
                                                                       void **memory, struct tokmap_error *error);

/* Frees memory from tokmap_cuda_memory_new(). May wait until the GPU has finished everything that is enqueued.
 *   device   must name the same GPU as at the allocation ("cuda" depends on the current context)
 *   memory   NULL: does nothing
 * Cannot fail; errors of the driver are ignored. */
TOKMAP_API void tokmap_cuda_memory_free(const char *device, void *memory);

/* Copies GPU memory to host memory, after everything that is enqueued on the stream, and waits until the copy is done.
 *   host     room for `bytes` bytes, of any kind of host memory
 *   memory   on `device`
 *   bytes    0: only waits for the stream
 * Statuses: OK, ERROR_NO_DEVICE, ERROR_DEVICE, ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_cuda_memory_read(const char *device, void *host,
                                                                        const void *memory, uint64_t bytes,
                                                                        struct CUstream_st *stream,
                                                                        struct tokmap_error *error);

/* Creates a stream that does not wait for the legacy default stream. Free it with tokmap_cuda_stream_free().
 * Statuses: OK, ERROR_NO_DEVICE, ERROR_DEVICE, ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_cuda_stream_new(const char *device, struct CUstream_st **stream,
                                                                       struct tokmap_error *error);

/* Frees a stream from tokmap_cuda_stream_new(), and returns at once. Work that is enqueued on it still runs.
 *   device   must name the same GPU as at the creation
 *   stream   NULL or another default stream: does nothing
 * Cannot fail; errors of the driver are ignored. */
TOKMAP_API void tokmap_cuda_stream_free(const char *device, struct CUstream_st *stream);

/* Makes work that is enqueued on the stream `waiting` from now on run after the work that is enqueued on the stream
 * `on` now. Returns without waiting for either. Statuses: OK, ERROR_NO_DEVICE, ERROR_DEVICE, ERROR_ARGUMENT (also if
 * `waiting` is capturing a graph and `on` is not; the capture stays valid), ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_cuda_stream_wait(const char *device, struct CUstream_st *waiting,
                                                                        struct CUstream_st *on,
                                                                        struct tokmap_error *error);

/* Waits until all work that is enqueued on the stream is done.
 * Statuses: OK, ERROR_NO_DEVICE, ERROR_DEVICE, ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status
tokmap_cuda_stream_synchronize(const char *device, struct CUstream_st *stream, struct tokmap_error *error);

#ifdef __cplusplus
}
#endif
#endif
