/* SPDX-License-Identifier: MIT */
/*
 * cuda_driver.h - the whole contract with the CUDA driver, on one page.
 *
 * The driver (libcuda.so.1) is not linked; it is opened when a device is requested for the first time. So the same
 * binary runs with and without a GPU. Its functions come from cuGetProcAddress where that exists (CUDA 11.3 and later),
 * because it returns the version of a function that has exactly the signature below, whatever later drivers call by
 * that name. Older drivers are asked with dlsym. No CUDA header is included.
 *
 * The loader, the benchmark, and the tests use this table. Every function in it returns a CUDA result, of which 0 is
 * success. NVIDIA's manual "CUDA Driver API" describes each one under the name in quotes. Any thread may call them.
 */
#ifndef TOKMAP_CUDA_CUDA_DRIVER_H
#define TOKMAP_CUDA_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "tokmap/tokmap.h"

struct CUctx_st;
struct CUgreenCtx_st;
struct CUstream_st;
struct CUevent_st;
struct CUmod_st;
struct CUfunc_st;

/* The results of the driver that this library distinguishes. */
enum {
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NOT_INITIALIZED = 3,
    CUDA_DEINITIALIZED = 4,
    CUDA_STUB_LIBRARY = 34,
    CUDA_NO_DEVICE = 100,
    CUDA_NOT_READY = 600,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_CONTEXT_IS_DESTROYED = 709,
    CUDA_STREAM_CAPTURE_FIRST = 900, /* from here to 908: the stream or the thread is capturing a graph */
    CUDA_STREAM_CAPTURE_LAST = 908,
    CUDA_STREAM_CAPTURE_IMPLICIT = 906, /* on the legacy default stream, while a stream that waits for it captures */
    CUDA_SYSTEM_NOT_READY = 802,
    CUDA_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_COMPAT_NOT_SUPPORTED = 804
};

/* Flags and attributes, with the driver's numbers. */
enum {
    CUDA_STREAM_NON_BLOCKING = 1,
    CUDA_EVENT_BLOCKING_SYNC = 1,
    CUDA_EVENT_DISABLE_TIMING = 2,
    CUDA_HOST_PORTABLE = 1, /* of memory that is registered or allocated */
    CUDA_CAPTURE_RELAXED = 2,
    CUDA_JIT_ERROR_LOG = 5,
    CUDA_JIT_ERROR_LOG_BYTES = 6,
    CUDA_POINTER_MEMORY_TYPE = 2,
    CUDA_POINTER_DEVICE_ORDINAL = 9,
    CUDA_MEMORY_DEVICE = 2,
    CUDA_DEVICE_MULTIPROCESSORS = 16,
    CUDA_DEVICE_PCI_BUS = 33,
    CUDA_DEVICE_PCI_DEVICE = 34,
    CUDA_DEVICE_PCI_DOMAIN = 50,
    CUDA_DEVICE_CAPABILITY_MAJOR = 75,
    CUDA_DEVICE_CAPABILITY_MINOR = 76,
    CUDA_DEVICE_PAGEABLE_ACCESS = 88,
    CUDA_DEVICE_HOST_PAGE_TABLES = 100,
    CUDA_DEVICE_HOST_NUMA = 134
};

/* The functions, as XX(need, field, name, decorated, version, arguments):
 *   need        1: a driver without the function cannot be used. 0: the field is NULL then
 *   field       of struct cuda_driver
 *   name        for cuGetProcAddress
 *   decorated   the symbol in the library, for dlsym
 *   version     the CUDA version that introduced this signature, 1000 * major + 10 * minor. An optional function is
 *               NULL with drivers before it: they may have another signature by that name
 * Device addresses are 64-bit numbers, devices are ints. */
/* clang-format off */
#define CUDA_DRIVER_MAP(XX)                                                                                            \
    XX(1, init, "cuInit", "cuInit", 11030, (unsigned flags))                                                           \
    XX(1, get_error_name, "cuGetErrorName", "cuGetErrorName", 11030, (int result, const char **name))                  \
    XX(1, get_error_string, "cuGetErrorString", "cuGetErrorString", 11030, (int result, const char **text))            \
    XX(1, device_get_count, "cuDeviceGetCount", "cuDeviceGetCount", 11030, (int *count))                               \
    XX(1, device_get, "cuDeviceGet", "cuDeviceGet", 11030, (int *device, int ordinal))                                 \
    XX(1, device_get_name, "cuDeviceGetName", "cuDeviceGetName", 11030, (char *name, int capacity, int device))        \
    XX(1, device_get_attribute, "cuDeviceGetAttribute", "cuDeviceGetAttribute", 11030,                                 \
       (int *value, int attribute, int device))                                                                        \
    XX(1, device_total_mem, "cuDeviceTotalMem", "cuDeviceTotalMem_v2", 11030, (size_t *bytes, int device))             \
    XX(1, primary_retain, "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain", 11030,                               \
       (struct CUctx_st **context, int device))                                                                        \
    XX(1, primary_release, "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2", 11030, (int device))           \
    XX(1, ctx_push, "cuCtxPushCurrent", "cuCtxPushCurrent_v2", 11030, (struct CUctx_st *context))                      \
    XX(1, ctx_pop, "cuCtxPopCurrent", "cuCtxPopCurrent_v2", 11030, (struct CUctx_st **context))                        \
    XX(1, ctx_set_current, "cuCtxSetCurrent", "cuCtxSetCurrent", 11030, (struct CUctx_st *context))                    \
    XX(1, ctx_get_current, "cuCtxGetCurrent", "cuCtxGetCurrent", 11030, (struct CUctx_st **context))                   \
    XX(0, ctx_get_id, "cuCtxGetId", "cuCtxGetId", 12000, (struct CUctx_st *context, unsigned long long *id))           \
    XX(1, ctx_get_device, "cuCtxGetDevice", "cuCtxGetDevice", 11030, (int *device))                                    \
    XX(1, ctx_synchronize, "cuCtxSynchronize", "cuCtxSynchronize", 11030, (void))                                      \
    XX(1, ctx_priority_range, "cuCtxGetStreamPriorityRange", "cuCtxGetStreamPriorityRange", 11030,                     \
       (int *least, int *greatest))                                                                                    \
    XX(0, exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", "cuThreadExchangeStreamCaptureMode", 11030,      \
       (int *mode))                                                                                                    \
    XX(1, stream_get_ctx, "cuStreamGetCtx", "cuStreamGetCtx", 11030,                                                   \
       (struct CUstream_st *stream, struct CUctx_st **context))                                                        \
    XX(0, stream_get_both_ctx, "cuStreamGetCtx", "cuStreamGetCtx_v2", 12050,                                           \
       (struct CUstream_st *stream, struct CUctx_st **context, struct CUgreenCtx_st **green))                          \
    XX(0, stream_is_capturing, "cuStreamIsCapturing", "cuStreamIsCapturing", 11030,                                    \
       (struct CUstream_st *stream, int *capturing))                                                                   \
    XX(1, stream_create, "cuStreamCreate", "cuStreamCreate", 11030, (struct CUstream_st **stream, unsigned flags))     \
    XX(1, stream_create_with_priority, "cuStreamCreateWithPriority", "cuStreamCreateWithPriority", 11030,              \
       (struct CUstream_st **stream, unsigned flags, int priority))                                                    \
    XX(1, stream_destroy, "cuStreamDestroy", "cuStreamDestroy_v2", 11030, (struct CUstream_st *stream))                \
    XX(1, stream_wait_event, "cuStreamWaitEvent", "cuStreamWaitEvent", 11030,                                          \
       (struct CUstream_st *stream, struct CUevent_st *event, unsigned flags))                                         \
    XX(1, stream_synchronize, "cuStreamSynchronize", "cuStreamSynchronize", 11030, (struct CUstream_st *stream))       \
    XX(1, stream_query, "cuStreamQuery", "cuStreamQuery", 11030, (struct CUstream_st *stream))                         \
    XX(1, event_create, "cuEventCreate", "cuEventCreate", 11030, (struct CUevent_st **event, unsigned flags))          \
    XX(1, event_destroy, "cuEventDestroy", "cuEventDestroy_v2", 11030, (struct CUevent_st *event))                     \
    XX(1, event_record, "cuEventRecord", "cuEventRecord", 11030,                                                       \
       (struct CUevent_st *event, struct CUstream_st *stream))                                                         \
    XX(1, event_query, "cuEventQuery", "cuEventQuery", 11030, (struct CUevent_st *event))                              \
    XX(1, event_synchronize, "cuEventSynchronize", "cuEventSynchronize", 11030, (struct CUevent_st *event))            \
    XX(1, event_elapsed_time, "cuEventElapsedTime", "cuEventElapsedTime", 11030,                                       \
       (float *milliseconds, struct CUevent_st *from, struct CUevent_st *to))                                          \
    XX(1, mem_alloc, "cuMemAlloc", "cuMemAlloc_v2", 11030, (uint64_t *address, size_t bytes))                          \
    XX(1, mem_free, "cuMemFree", "cuMemFree_v2", 11030, (uint64_t address))                                            \
    XX(1, host_register, "cuMemHostRegister", "cuMemHostRegister_v2", 11030,                                           \
       (void *memory, size_t bytes, unsigned flags))                                                                   \
    XX(1, host_unregister, "cuMemHostUnregister", "cuMemHostUnregister", 11030, (void *memory))                        \
    XX(1, host_alloc, "cuMemHostAlloc", "cuMemHostAlloc", 11030, (void **memory, size_t bytes, unsigned flags))        \
    XX(1, host_free, "cuMemFreeHost", "cuMemFreeHost", 11030, (void *memory))                                          \
    XX(1, copy_to_device, "cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2", 11030,                                          \
       (uint64_t into, const void *from, size_t bytes, struct CUstream_st *stream))                                    \
    XX(1, copy_to_host, "cuMemcpyDtoHAsync", "cuMemcpyDtoHAsync_v2", 11030,                                            \
       (void *into, uint64_t from, size_t bytes, struct CUstream_st *stream))                                          \
    XX(1, copy_on_device, "cuMemcpyDtoDAsync", "cuMemcpyDtoDAsync_v2", 11030,                                          \
       (uint64_t into, uint64_t from, size_t bytes, struct CUstream_st *stream))                                       \
    XX(1, copy_to_device_now, "cuMemcpyHtoD", "cuMemcpyHtoD_v2", 11030,                                                \
       (uint64_t into, const void *from, size_t bytes))                                                                \
    XX(1, copy_to_host_now, "cuMemcpyDtoH", "cuMemcpyDtoH_v2", 11030, (void *into, uint64_t from, size_t bytes))       \
    XX(1, memset_bytes, "cuMemsetD8Async", "cuMemsetD8Async", 11030,                                                   \
       (uint64_t into, unsigned char value, size_t count, struct CUstream_st *stream))                                 \
    XX(1, module_load, "cuModuleLoadDataEx", "cuModuleLoadDataEx", 11030,                                              \
       (struct CUmod_st **module, const void *image, unsigned options, int *names, void **values))                     \
    XX(1, module_unload, "cuModuleUnload", "cuModuleUnload", 11030, (struct CUmod_st *module))                         \
    XX(1, module_get_function, "cuModuleGetFunction", "cuModuleGetFunction", 11030,                                    \
       (struct CUfunc_st **function, struct CUmod_st *module, const char *name))                                       \
    XX(0, func_load, "cuFuncLoad", "cuFuncLoad", 12040, (struct CUfunc_st *function))                                  \
    XX(0, max_active_blocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                                            \
       "cuOccupancyMaxActiveBlocksPerMultiprocessor", 11030,                                                           \
       (int *blocks, struct CUfunc_st *function, int block, size_t shared_bytes))                                      \
    XX(1, launch_kernel, "cuLaunchKernel", "cuLaunchKernel", 11030,                                                    \
       (struct CUfunc_st *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,               \
        unsigned block_y, unsigned block_z, unsigned shared_bytes, struct CUstream_st *stream, void **arguments,       \
        void **extra))                                                                                                 \
    XX(1, pointer_get_attribute, "cuPointerGetAttribute", "cuPointerGetAttribute", 11030,                              \
       (void *value, int attribute, uint64_t address))
/* clang-format on */

struct cuda_driver {
    char path[256]; /* the library's file, as the dynamic linker found it */
    int version;    /* newest CUDA version that the driver supports: 1000 * major + 10 * minor */
#define CUDA_DRIVER_FIELD(need, field, name, decorated, version, arguments) int(*field) arguments;
    CUDA_DRIVER_MAP(CUDA_DRIVER_FIELD)
#undef CUDA_DRIVER_FIELD
};

/* Opens and initializes the driver: the library in the environment variable TOKMAP_CUDA_DRIVER (a path; ignored in
 * set-user-id programs), or else libcuda.so.1 as the dynamic linker finds it. Opening the same file again returns the
 * same table, which stays valid for the life of the process. The driver is never closed; CUDA's own libraries do not
 * close it either. Any thread.
 * Statuses: OK, ERROR_MEMORY, ERROR_NO_DEVICE (the message says why: there is no such library; it is a stub or too old;
 * there is no device, or none is visible; the process is a child of one that used the driver). */
enum tokmap_status cuda_driver_open(const struct cuda_driver **driver, struct tokmap_error *error);

/* Counts the devices that this process may use, at least 1. Statuses: OK, ERROR_NO_DEVICE (it may use no device). */
enum tokmap_status cuda_driver_devices(const struct cuda_driver *driver, int *devices, struct tokmap_error *error);

/* Fills *error for a call of the driver that failed, with its number and name, and with advice where there is any.
 *   result   of the call
 *   doing    what failed, to begin the sentence "... failed: ": no capital, no period
 * Returns `status`. */
enum tokmap_status cuda_driver_error(const struct cuda_driver *driver, enum tokmap_status status, int result,
                                     struct tokmap_error *error, const char *doing);

#endif
