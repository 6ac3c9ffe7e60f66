/* SPDX-License-Identifier: MIT */
/*
 * driver_types.h - the part of the CUDA driver's interface that the emulated driver has: types, numbers, and
 * prototypes, written from NVIDIA's published documentation. The library under test has its own declarations
 * (src/cuda/cuda_driver.h), so a mistake in one of the two shows.
 */
#ifndef TESTS_CUDA_SOFTWARE_DRIVER_TYPES_H
#define TESTS_CUDA_SOFTWARE_DRIVER_TYPES_H

#include <stddef.h>
#include <stdint.h>

#define CUDA_SOFTWARE_API __attribute__((visibility("default")))

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUgraph_st *CUgraph;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef struct {
    int type; /* CU_DEV_RESOURCE_TYPE_SM */
    unsigned char internal[92];
    struct {
        unsigned smCount, minSmPartitionSize, smCoscheduledAlignment;
        unsigned char unused[36];
    } sm;
} CUdevResource;
enum { CU_DEV_RESOURCE_TYPE_SM = 1 };
enum { CU_GREEN_CTX_DEFAULT_STREAM = 1 };

/* Results: name, number, text. */
#define CUDA_RESULTS(XX)                                                                                               \
    XX(CUDA_SUCCESS, 0, "no error")                                                                                    \
    XX(CUDA_ERROR_INVALID_VALUE, 1, "invalid argument")                                                                \
    XX(CUDA_ERROR_OUT_OF_MEMORY, 2, "out of memory")                                                                   \
    XX(CUDA_ERROR_NOT_INITIALIZED, 3, "initialization error")                                                          \
    XX(CUDA_ERROR_STUB_LIBRARY, 34, "CUDA driver is a stub library")                                                   \
    XX(CUDA_ERROR_DEVICE_UNAVAILABLE, 46, "CUDA-capable device(s) is/are busy or unavailable")                         \
    XX(CUDA_ERROR_NO_DEVICE, 100, "no CUDA-capable device is detected")                                                \
    XX(CUDA_ERROR_INVALID_DEVICE, 101, "invalid device ordinal")                                                       \
    XX(CUDA_ERROR_INVALID_CONTEXT, 201, "invalid device context")                                                      \
    XX(CUDA_ERROR_NO_BINARY_FOR_GPU, 209, "no kernel image is available for execution on the device")                  \
    XX(CUDA_ERROR_ECC_UNCORRECTABLE, 214, "uncorrectable ECC error encountered")                                       \
    XX(CUDA_ERROR_INVALID_PTX, 218, "a PTX JIT compilation failed")                                                    \
    XX(CUDA_ERROR_JIT_COMPILATION_DISABLED, 223, "PTX JIT compilation was disabled")                                   \
    XX(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221, "PTX JIT compiler library not found")                                   \
    XX(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222, "the provided PTX was compiled with an unsupported toolchain.")        \
    XX(CUDA_ERROR_INVALID_HANDLE, 400, "invalid resource handle")                                                      \
    XX(CUDA_ERROR_NOT_FOUND, 500, "named symbol not found")                                                            \
    XX(CUDA_ERROR_NOT_READY, 600, "device not ready")                                                                  \
    XX(CUDA_ERROR_ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered")                                    \
    XX(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709, "context is destroyed")                                                   \
    XX(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712, "part or all of the requested memory range is already mapped")  \
    XX(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713, "pointer does not correspond to a registered memory region")        \
    XX(CUDA_ERROR_MISALIGNED_ADDRESS, 716, "misaligned address")                                                       \
    XX(CUDA_ERROR_LAUNCH_FAILED, 719, "unspecified launch failure")                                                    \
    XX(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900, "operation not permitted when stream is capturing")                 \
    XX(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901, "operation failed due to a previous error during capture")          \
    XX(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902, "operation would result in a merge of separate capture sequences")        \
    XX(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905, "dependency created on uncaptured work in another stream")            \
    XX(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906,                                                                        \
       "operation would make the legacy stream depend on a capturing blocking stream")                                 \
    XX(CUDA_ERROR_CAPTURED_EVENT, 907, "operation not permitted on an event last recorded in a capturing stream")      \
    XX(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908,                                                                    \
       "attempt to terminate a thread-local capture sequence from another thread")                                     \
    XX(CUDA_ERROR_UNKNOWN, 999, "unknown error")

enum {
#define CUDA_RESULT_NUMBER(name, number, text) name = number,
    CUDA_RESULTS(CUDA_RESULT_NUMBER)
#undef CUDA_RESULT_NUMBER
};

enum { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 };
#define CU_STREAM_LEGACY ((CUstream)(uintptr_t)1)
#define CU_STREAM_PER_THREAD ((CUstream)(uintptr_t)2)
enum { CU_EVENT_DEFAULT = 0, CU_EVENT_BLOCKING_SYNC = 1, CU_EVENT_DISABLE_TIMING = 2, CU_EVENT_INTERPROCESS = 4 };
enum {
    CU_POINTER_ATTRIBUTE_CONTEXT = 1,
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
    CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9
};
enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2 };
enum {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
    CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
    CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40,
    CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
    CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 88,
    CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91,
    CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED = 99,
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES = 100,
    CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID = 134
};
enum { CU_MEMHOSTREGISTER_PORTABLE = 1, CU_MEMHOSTREGISTER_DEVICEMAP = 2, CU_MEMHOSTREGISTER_READ_ONLY = 8 };
enum {
    CU_STREAM_CAPTURE_STATUS_NONE = 0,
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
    CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2
};
enum { CU_STREAM_CAPTURE_MODE_GLOBAL = 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1, CU_STREAM_CAPTURE_MODE_RELAXED = 2 };

/* Every function: the name for cuGetProcAddress, the symbol, the arguments. Counters and faults use its index. */
#define CUDA_ENTRIES(XX)                                                                                               \
    XX(cuInit, cuInit, (unsigned flags))                                                                               \
    XX(cuDriverGetVersion, cuDriverGetVersion, (int *version))                                                         \
    XX(cuGetErrorName, cuGetErrorName, (CUresult result, const char **name))                                           \
    XX(cuGetErrorString, cuGetErrorString, (CUresult result, const char **text))                                       \
    XX(cuDeviceGetCount, cuDeviceGetCount, (int *count))                                                               \
    XX(cuDeviceGet, cuDeviceGet, (CUdevice * device, int ordinal))                                                     \
    XX(cuDeviceGetName, cuDeviceGetName, (char *name, int bytes, CUdevice device))                                     \
    XX(cuDeviceGetAttribute, cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))                       \
    XX(cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                                       \
    XX(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, (char *id, int bytes, CUdevice device))                               \
    XX(cuDeviceGetUuid, cuDeviceGetUuid_v2, (unsigned char uuid[16], CUdevice device))                                 \
    XX(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                     \
    XX(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                     \
    XX(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, (CUdevice device))                                         \
    XX(cuCtxGetId, cuCtxGetId, (CUcontext context, unsigned long long *id))                                            \
    XX(cuCtxPushCurrent, cuCtxPushCurrent_v2, (CUcontext context))                                                     \
    XX(cuCtxPopCurrent, cuCtxPopCurrent_v2, (CUcontext * context))                                                     \
    XX(cuCtxSetCurrent, cuCtxSetCurrent, (CUcontext context))                                                          \
    XX(cuCtxGetCurrent, cuCtxGetCurrent, (CUcontext * context))                                                        \
    XX(cuCtxGetDevice, cuCtxGetDevice, (CUdevice * device))                                                            \
    XX(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, (int *least, int *greatest))                          \
    XX(cuCtxSynchronize, cuCtxSynchronize, (void))                                                                     \
    XX(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (int *mode))                              \
    XX(cuStreamBeginCapture, cuStreamBeginCapture_v2, (CUstream stream, int mode))                                     \
    XX(cuStreamEndCapture, cuStreamEndCapture, (CUstream stream, CUgraph * graph))                                     \
    XX(cuStreamIsCapturing, cuStreamIsCapturing, (CUstream stream, int *status))                                       \
    XX(cuStreamCreate, cuStreamCreate, (CUstream * stream, unsigned flags))                                            \
    XX(cuStreamCreateWithPriority, cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority))      \
    XX(cuStreamDestroy, cuStreamDestroy_v2, (CUstream stream))                                                         \
    XX(cuStreamGetCtx, cuStreamGetCtx, (CUstream stream, CUcontext * context))                                         \
    XX(cuStreamGetCtx_v2, cuStreamGetCtx_v2, (CUstream stream, CUcontext * context, CUgreenCtx * green))               \
    XX(cuStreamGetGreenCtx, cuStreamGetGreenCtx, (CUstream stream, CUgreenCtx * green))                                \
    XX(cuDeviceGetDevResource, cuDeviceGetDevResource, (CUdevice device, CUdevResource * resource, int type))          \
    XX(cuDevResourceGenerateDesc, cuDevResourceGenerateDesc,                                                           \
       (CUdevResourceDesc * description, CUdevResource * resources, unsigned count))                                   \
    XX(cuGreenCtxCreate, cuGreenCtxCreate,                                                                             \
       (CUgreenCtx * green, CUdevResourceDesc description, CUdevice device, unsigned flags))                           \
    XX(cuGreenCtxDestroy, cuGreenCtxDestroy, (CUgreenCtx green))                                                       \
    XX(cuGreenCtxStreamCreate, cuGreenCtxStreamCreate,                                                                 \
       (CUstream * stream, CUgreenCtx green, unsigned flags, int priority))                                            \
    XX(cuCtxFromGreenCtx, cuCtxFromGreenCtx, (CUcontext * context, CUgreenCtx green))                                  \
    XX(cuStreamWaitEvent, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))                         \
    XX(cuStreamSynchronize, cuStreamSynchronize, (CUstream stream))                                                    \
    XX(cuStreamQuery, cuStreamQuery, (CUstream stream))                                                                \
    XX(cuEventCreate, cuEventCreate, (CUevent * event, unsigned flags))                                                \
    XX(cuEventDestroy, cuEventDestroy_v2, (CUevent event))                                                             \
    XX(cuEventRecord, cuEventRecord, (CUevent event, CUstream stream))                                                 \
    XX(cuEventQuery, cuEventQuery, (CUevent event))                                                                    \
    XX(cuEventSynchronize, cuEventSynchronize, (CUevent event))                                                        \
    XX(cuEventElapsedTime, cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end))                      \
    XX(cuMemGetInfo, cuMemGetInfo_v2, (size_t * available, size_t * total))                                            \
    XX(cuMemAlloc, cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes))                                               \
    XX(cuMemFree, cuMemFree_v2, (CUdeviceptr address))                                                                 \
    XX(cuMemHostAlloc, cuMemHostAlloc, (void **address, size_t bytes, unsigned flags))                                 \
    XX(cuMemFreeHost, cuMemFreeHost, (void *address))                                                                  \
    XX(cuMemHostRegister, cuMemHostRegister_v2, (void *address, size_t bytes, unsigned flags))                         \
    XX(cuMemHostUnregister, cuMemHostUnregister, (void *address))                                                      \
    XX(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, (CUdeviceptr * device, void *host, unsigned flags))    \
    XX(cuMemcpyHtoD, cuMemcpyHtoD_v2, (CUdeviceptr into, const void *from, size_t bytes))                              \
    XX(cuMemcpyDtoH, cuMemcpyDtoH_v2, (void *into, CUdeviceptr from, size_t bytes))                                    \
    XX(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (CUdeviceptr into, const void *from, size_t bytes, CUstream stream))   \
    XX(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void *into, CUdeviceptr from, size_t bytes, CUstream stream))         \
    XX(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (CUdeviceptr into, CUdeviceptr from, size_t bytes, CUstream stream))   \
    XX(cuMemsetD8Async, cuMemsetD8Async, (CUdeviceptr into, unsigned char value, size_t bytes, CUstream stream))       \
    XX(cuPointerGetAttribute, cuPointerGetAttribute, (void *data, int attribute, CUdeviceptr address))                 \
    XX(cuModuleLoadDataEx, cuModuleLoadDataEx,                                                                         \
       (CUmodule * module, const void *image, unsigned options, int *names, void **values))                            \
    XX(cuModuleLoadData, cuModuleLoadData, (CUmodule * module, const void *image))                                     \
    XX(cuModuleLoadFatBinary, cuModuleLoadFatBinary, (CUmodule * module, const void *image))                           \
    XX(cuModuleUnload, cuModuleUnload, (CUmodule module))                                                              \
    XX(cuModuleGetFunction, cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))           \
    XX(cuFuncLoad, cuFuncLoad, (CUfunction function))                                                                  \
    XX(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor,                       \
       (int *blocks, CUfunction function, int block_size, size_t shared_bytes))                                        \
    XX(cuLaunchKernel, cuLaunchKernel,                                                                                 \
       (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,    \
        unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters, void **extra))

#define CUDA_ENTRY_PROTOTYPE(name, symbol, arguments) CUDA_SOFTWARE_API CUresult symbol arguments;
CUDA_ENTRIES(CUDA_ENTRY_PROTOTYPE)
#undef CUDA_ENTRY_PROTOTYPE
CUDA_SOFTWARE_API CUresult cuGetProcAddress(const char *name, void **entry, int version, uint64_t flags);
CUDA_SOFTWARE_API CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags, int *found);

enum cuda_entry {
#define CUDA_ENTRY_NUMBER(name, symbol, arguments) ENTRY_##name,
    CUDA_ENTRIES(CUDA_ENTRY_NUMBER)
#undef CUDA_ENTRY_NUMBER
        CUDA_ENTRY_COUNT
};

#endif
