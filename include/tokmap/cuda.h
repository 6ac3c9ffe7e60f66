/*
 * cuda.h - device loading: batches that arrive in the GPU memory of the program, in order with its own stream.
 *
 *     struct tokmap_loader_options o = TOKMAP_LOADER_OPTIONS_INIT;
 *     o.device = "cuda:0";                                              the only difference at opening
 *     ...
 *     tokmap_cuda_next(loader, &out, stream, &batch, &error)            out.inputs, ...: device memory of the caller's own
 *
 * next() enqueues on the caller's stream and returns: what the caller enqueues there afterwards finds the batch in its
 * tensors, and what it enqueued before has still seen the old contents. There is nothing to release and nothing changes
 * under the caller. The same outputs may be given every time, so a CUDA graph of the step can read them: call next()
 * between its launches, not while it is captured.
 *
 *   - The driver (libcuda.so.1) is opened at run time, when the first device is asked for. Without it, or without a GPU,
 *     that is TOKMAP_ERROR_NO_DEVICE with the reason, and everything on the host works. The environment variable
 *     TOKMAP_CUDA_DRIVER names another library to open in its place (tests use it; not in set-user-id programs).
 *   - Everything is in the device's primary context, as in programs of the CUDA runtime and in PyTorch. A caller's
 *     current context is left as it was. A stream of NULL is the device's default stream.
 *   - A process forked after CUDA was first used cannot use it: TOKMAP_ERROR_NO_DEVICE from functions that open the
 *     device, TOKMAP_ERROR_ARGUMENT from loaders that were open.
 *   - Statuses with a CUDA result have its number in error.device and its name in the sentence.
 *   - `device` is "cuda:N", or "cuda": the device of the calling thread's current context, else 0.
 *
 * No header of CUDA's is included: struct CUstream_st * is what cudaStream_t and CUstream are.
 */
#ifndef TOKMAP_CUDA_H
#define TOKMAP_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "tokmap.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* ---------------------------------------------------------------- what there is --------------------------------- */

struct tokmap_cuda_info {
    size_t size;
    int driver_version; /* newest CUDA version that the driver serves: 1000 * major + 10 * minor */
    int devices;        /* that this process may use, at least 1 */
    char path[256];     /* the driver's library */
};
/* Whether there is a usable driver with a device. Creates no context. Any thread.
 * Statuses: OK, ERROR_NO_DEVICE (the sentence says why: no library, a stub, no device, none visible, forked),
 * ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_cuda_probe(struct tokmap_cuda_info *info,
                                                                  struct tokmap_error *error);

struct tokmap_cuda_device_info {
    size_t size;
    char name[128];
    int capability_major, capability_minor;
    int numa_node;   /* of the host, nearest to it; -1: unknown, or there is one */
    uint64_t memory; /* bytes */
};
/* What a device is. Creates no context. Any thread.
 * Statuses: OK, ERROR_NO_DEVICE (also for a number that no device has), ERROR_DEVICE, ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_cuda_device(int device, struct tokmap_cuda_device_info *info,
                                                                   struct tokmap_error *error);

/* ---------------------------------------------------------------- loading --------------------------------------- */

/* tokmap_loader_next() with the stream's type. */
TOKMAP_MUST_CHECK static inline enum tokmap_status tokmap_cuda_next(struct tokmap_loader *loader,
                                                                    const struct tokmap_out *out,
                                                                    struct CUstream_st *stream,
                                                                    struct tokmap_batch *batch,
                                                                    struct tokmap_error *error)
{
    return tokmap_loader_next(loader, out, (void *)stream, batch, error);
}

struct tokmap_loader_device {
    size_t size;
    int device;            /* -1: the loader delivers in host memory; the rest is 0, numa_node -1 */
    int numa_node;         /* where the pinned slots are and the producer runs; -1: anywhere */
    int kernel;            /* 1: batches are expanded on the device; 0: on the host, see `reason` */
    uint64_t pinned_bytes; /* page-locked host memory */
    uint64_t device_bytes; /* device memory */
    char reason[256];      /* why the kernel is not used; "" if it is */
};
/* How a loader delivers. Any thread. Statuses: OK, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_loader_device(const struct tokmap_loader *loader,
                                                                     struct tokmap_loader_device *info);

/* ---------------------------------------------------------------- for programs without the CUDA runtime ---------- */

/* Device memory, at a multiple of 256 bytes, not cleared. It keeps the device's primary context alive until it is freed.
 * Any thread. Statuses: OK, ERROR_MEMORY (the device has no such room), ERROR_NO_DEVICE, ERROR_DEVICE, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_cuda_memory_new(const char *device, uint64_t bytes, void **memory,
                                                                       struct tokmap_error *error);
/* Frees it; `device` must mean the same one as then ("cuda" is that of the current context). Accepts NULL. May wait for the
 * device to finish what it is doing. Cannot fail. */
TOKMAP_API void tokmap_cuda_memory_free(const char *device, void *memory);
/* Copies device memory to host memory, after what `stream` has enqueued, and waits for it.
 * Any thread. Statuses: OK, ERROR_NO_DEVICE, ERROR_DEVICE, ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_cuda_memory_read(const char *device, void *host,
                                                                        const void *memory, uint64_t bytes,
                                                                        struct CUstream_st *stream,
                                                                        struct tokmap_error *error);

/* A stream that does not wait for the default stream. It keeps the primary context alive until it is freed.
 * Any thread. Statuses: OK, ERROR_NO_DEVICE, ERROR_DEVICE, ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_cuda_stream_new(const char *device, struct CUstream_st **stream,
                                                                       struct tokmap_error *error);
/* What is enqueued is still done. Accepts NULL. Cannot fail. */
TOKMAP_API void tokmap_cuda_stream_free(const char *device, struct CUstream_st *stream);
/* What is enqueued on `waiting` from now on runs after what `on` has now. Does not wait on the host.
 * Any thread. Statuses: OK, ERROR_NO_DEVICE, ERROR_DEVICE, ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_cuda_stream_wait(const char *device, struct CUstream_st *waiting,
                                                                        struct CUstream_st *on,
                                                                        struct tokmap_error *error);
/* Waits until all that is enqueued on the stream is done.
 * Any thread. Statuses: OK, ERROR_NO_DEVICE, ERROR_DEVICE, ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_cuda_stream_synchronize(const char *device,
                                                                               struct CUstream_st *stream,
                                                                               struct tokmap_error *error);

#ifdef __cplusplus
}
#endif
#endif
