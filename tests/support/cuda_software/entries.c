/* entries.c - the functions of the emulated driver for devices and contexts. See cuda_software.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "entries.h"

#define STACK_MOST 16

struct CUctx_st contexts[DEVICES_MOST];
bool forked;
static bool initialized;

__thread CUcontext current_context;
static __thread CUcontext stack[STACK_MOST];
static __thread unsigned stack_depth;

/* ---- the beginning and end of every function ---- */

CUresult enter(enum cuda_entry entry, enum needs needs)
{
    if (forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&big);
    counted.calls[entry]++;
    CUresult result = fault_of(entry, false);
    if (configuration.stub)
        result = CUDA_ERROR_STUB_LIBRARY;
    else if (!result && needs != NOTHING && !initialized)
        result = CUDA_ERROR_NOT_INITIALIZED;
    else if (!result && needs >= CONTEXT && !current_context)
        result = CUDA_ERROR_INVALID_CONTEXT;
    else if (!result && breaks_capture(entry))
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    else if (!result && needs == CONTEXT)
        result = current_context->failed;
    if (result)
        pthread_mutex_unlock(&big);
    return result;
}

CUresult leave(CUresult result)
{
    pthread_mutex_unlock(&big);
    return result;
}

CUresult leave_released(CUresult result)
{
    return leave(result || !current_context ? result : current_context->failed);
}

/* ---- the driver and its devices ---- */

static void in_child(void)
{
    forked = initialized;
    (void)pthread_mutex_init(&big, NULL);
}
static void before_fork(void)
{
    pthread_mutex_lock(&big);
}
static void in_parent(void)
{
    pthread_mutex_unlock(&big);
}

/* Returns the number of devices that CUDA_VISIBLE_DEVICES allows: those before the first that does not exist. */
static int visible(void)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    int count = 0;
    if (!text)
        return configuration.devices;
    while (*text) {
        char *end;
        long ordinal = strtol(text, &end, 10);
        if (end == text || ordinal < 0 || ordinal >= configuration.devices)
            break;
        count++;
        text = end + (*end == ',');
    }
    return count;
}

CUresult cuInit(unsigned flags)
{
    static bool registered;
    ENTER(cuInit, NOTHING);
    if (flags)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (!visible())
        return leave(CUDA_ERROR_NO_DEVICE);
    if (!registered)
        (void)pthread_atfork(before_fork, in_parent, in_child);
    registered = initialized = true;
    return leave(CUDA_SUCCESS);
}

CUresult cuDriverGetVersion(int *version)
{
    ENTER(cuDriverGetVersion, NOTHING);
    *version = configuration.version;
    return leave(CUDA_SUCCESS);
}

CUresult cuGetErrorName(CUresult result, const char **name)
{
    switch (result) {
#define RESULT_NAME(result_name, number, text)                                                                         \
    case number:                                                                                                       \
        *name = #result_name;                                                                                          \
        return CUDA_SUCCESS;
        CUDA_RESULTS(RESULT_NAME)
    default:
        *name = NULL;
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuGetErrorString(CUresult result, const char **string)
{
    switch (result) {
#define RESULT_TEXT(result_name, number, text)                                                                         \
    case number:                                                                                                       \
        *string = text;                                                                                                \
        return CUDA_SUCCESS;
        CUDA_RESULTS(RESULT_TEXT)
    default:
        *string = NULL;
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuDeviceGetCount(int *count)
{
    ENTER(cuDeviceGetCount, INITIALIZED);
    *count = visible();
    return leave(CUDA_SUCCESS);
}

static bool is_device(CUdevice device)
{
    return device >= 0 && device < configuration.devices;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER(cuDeviceGet, INITIALIZED);
    if (ordinal < 0 || ordinal >= visible())
        return leave(CUDA_ERROR_INVALID_DEVICE);
    *device = ordinal;
    return leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    ENTER(cuDeviceGetName, INITIALIZED);
    if (!is_device(device) || bytes <= 0)
        return leave(is_device(device) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE);
    (void)snprintf(name, (size_t)bytes, "emulated driver, device %d", device);
    return leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetPCIBusId(char *id, int bytes, CUdevice device)
{
    ENTER(cuDeviceGetPCIBusId, INITIALIZED);
    if (!is_device(device) || bytes <= 0)
        return leave(is_device(device) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE);
    (void)snprintf(id, (size_t)bytes, "ffff:%02x:00.0", (unsigned)device);
    return leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    ENTER(cuDeviceGetAttribute, INITIALIZED);
    if (!is_device(device))
        return leave(CUDA_ERROR_INVALID_DEVICE);
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = 132;
        break;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
        *value = 0xffff;
        break;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        *value = device;
        break;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
        *value = 0;
        break;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
        *value = 2;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = configuration.capability / 10;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = configuration.capability % 10;
        break;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
        *value = configuration.numa;
        break;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
        *value = 1;
        break;
    default:
        return leave(CUDA_ERROR_INVALID_VALUE);
    }
    return leave(CUDA_SUCCESS);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    ENTER(cuDeviceTotalMem, INITIALIZED);
    if (!is_device(device))
        return leave(CUDA_ERROR_INVALID_DEVICE);
    *bytes = configuration.memory;
    return leave(CUDA_SUCCESS);
}

/* ---- contexts ---- */

/* Waits for everything that is enqueued on the streams of a context; the lock is released meanwhile. */
static void await_all(CUcontext context)
{
    for (CUstream stream = all_streams; stream;) {
        if (stream->context == context && !is_over(stream, stream->issued)) {
            await_over(stream, stream->issued);
            stream = all_streams; /* the list may have changed meanwhile */
        } else {
            stream = stream->next;
        }
    }
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRetain, INITIALIZED);
    if (!is_device(device))
        return leave(CUDA_ERROR_INVALID_DEVICE);
    CUcontext made = &contexts[device];
    made->device = device;
    if (!made->legacy)
        made->legacy = stream_new(made, CU_STREAM_DEFAULT, 0, true);
    if (!made->per_thread)
        made->per_thread = stream_new(made, CU_STREAM_DEFAULT, 0, true);
    if (!made->legacy || !made->per_thread)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    counted.contexts_made += !made->retained;
    made->retained++;
    counted.contexts++;
    *context = made;
    return leave(CUDA_SUCCESS);
}

/* Destroys everything that is left in the context, as the real driver does, and reports it as a leak. */
static void context_end(CUcontext context)
{
    await_all(context);
    for (CUstream stream = all_streams, next; stream; stream = next) {
        next = stream->next;
        if (stream->context != context || stream->own || stream->destroyed)
            continue;
        violation("a context is released with a stream that was not destroyed");
        counted.streams--;
        stream_end(stream);
    }
    if (context->used_bytes)
        violation("a context is released with %llu bytes of device memory that were not freed",
                  (unsigned long long)context->used_bytes);
    context->failed = CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRelease, INITIALIZED);
    if (!is_device(device))
        return leave(CUDA_ERROR_INVALID_DEVICE);
    if (!contexts[device].retained) {
        violation("cuDevicePrimaryCtxRelease of a context that is not retained");
        return leave(CUDA_ERROR_INVALID_CONTEXT);
    }
    counted.contexts--;
    if (!--contexts[device].retained)
        context_end(&contexts[device]);
    return leave(CUDA_SUCCESS);
}

static bool is_context(CUcontext context, const char *call)
{
    if (context >= contexts && context < contexts + DEVICES_MOST && context->retained)
        return true;
    violation("%s uses a context that is not retained", call);
    return false;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    ENTER(cuCtxPushCurrent, INITIALIZED);
    if (!is_context(context, "cuCtxPushCurrent"))
        return leave(CUDA_ERROR_INVALID_CONTEXT);
    if (stack_depth == STACK_MOST) {
        violation("cuCtxPushCurrent: %d contexts are pushed and none is popped", STACK_MOST);
        return leave(CUDA_ERROR_INVALID_VALUE);
    }
    stack[stack_depth++] = current_context;
    current_context = context;
    return leave(CUDA_SUCCESS);
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    ENTER(cuCtxPopCurrent, INITIALIZED);
    if (!stack_depth) {
        violation("cuCtxPopCurrent: nothing was pushed");
        return leave(CUDA_ERROR_INVALID_CONTEXT);
    }
    if (context)
        *context = current_context;
    current_context = stack[--stack_depth];
    return leave(CUDA_SUCCESS);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    ENTER(cuCtxSetCurrent, INITIALIZED);
    if (context && !is_context(context, "cuCtxSetCurrent"))
        return leave(CUDA_ERROR_INVALID_CONTEXT);
    current_context = context;
    return leave(CUDA_SUCCESS);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    ENTER(cuCtxGetCurrent, INITIALIZED);
    *context = current_context;
    return leave(CUDA_SUCCESS);
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    ENTER(cuCtxGetDevice, RELEASES);
    *device = current_context->device;
    return leave(CUDA_SUCCESS);
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER(cuCtxGetStreamPriorityRange, CONTEXT);
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return leave(CUDA_SUCCESS);
}

CUresult cuCtxSynchronize(void)
{
    ENTER(cuCtxSynchronize, CONTEXT);
    CUcontext context = current_context;
    uint64_t clock[COLUMNS] = {0};
    counted.synchronizations++;
    for (CUstream stream = all_streams; stream; stream = stream->next)
        if (stream->context == context)
            clock_join(clock, stream->clock);
    await_all(context);
    clock_join(host_clock, clock);
    return leave(context->failed);
}
