/* entries.c - the functions of the emulated driver, and its controls and reports. See cuda_software.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "entries.h"

#define VIOLATIONS_KEPT 32
#define STACK_MOST 16
#define EXIT_STATUS 97

struct cuda_software_counts counted;
struct CUctx_st contexts[DEVICES_MOST];
static bool initialized, forked;
static char violations[VIOLATIONS_KEPT][240];

__thread CUcontext current_context;
static __thread CUcontext stack[STACK_MOST];
static __thread unsigned stack_depth;
static __thread int capture_mode;

/* ---- graphs: one capture at a time; captured work is checked and then ignored ---- */

static struct {
    CUstream stream; /* NULL: nothing is being captured */
    int mode;
    const void *thread; /* the thread that began it, as the address of a thread-local variable */
    bool broken;
} capture;

/* Calls that a thread must not make during a capture unless its mode is relaxed. */
static const bool unsafe[CUDA_ENTRY_COUNT] = {
    [ENTRY_cuMemAlloc] = true,          [ENTRY_cuMemFree] = true,           [ENTRY_cuMemHostAlloc] = true,
    [ENTRY_cuMemFreeHost] = true,       [ENTRY_cuMemHostRegister] = true,   [ENTRY_cuMemHostUnregister] = true,
    [ENTRY_cuMemcpyHtoD] = true,        [ENTRY_cuMemcpyDtoH] = true,        [ENTRY_cuEventQuery] = true,
    [ENTRY_cuEventSynchronize] = true,  [ENTRY_cuStreamSynchronize] = true, [ENTRY_cuStreamQuery] = true,
    [ENTRY_cuCtxSynchronize] = true,    [ENTRY_cuModuleLoadDataEx] = true,  [ENTRY_cuModuleUnload] = true,
    [ENTRY_cuStreamDestroy] = true,     [ENTRY_cuEventDestroy] = true,
};

/* Returns whether the current capture forbids a call. Such a call invalidates the capture. */
static bool breaks_capture(enum cuda_entry entry)
{
    if (!capture.stream || !unsafe[entry] || capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    if (capture.thread == &capture_mode ? capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED
                                        : capture.mode != CU_STREAM_CAPTURE_MODE_GLOBAL)
        return false;
    capture.broken = true;
    return true;
}

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

void violation(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (counted.violations < VIOLATIONS_KEPT)
        (void)vsnprintf(violations[counted.violations], sizeof violations[0], format, arguments);
    counted.violations++;
    va_end(arguments);
}

/* ---- controls and reports ---- */

void cuda_software_counts(struct cuda_software_counts *counts)
{
    pthread_mutex_lock(&big);
    *counts = counted;
    pthread_mutex_unlock(&big);
}

const char *cuda_software_violation(unsigned i)
{
    pthread_mutex_lock(&big);
    const char *text = i < VIOLATIONS_KEPT && i < counted.violations ? violations[i] : NULL;
    pthread_mutex_unlock(&big);
    return text;
}

void cuda_software_reset(void)
{
    pthread_mutex_lock(&big);
    memset(counted.calls, 0, sizeof counted.calls);
    counted.launches = counted.copies = counted.copied_bytes = counted.pageable_copies = counted.violations = 0;
    pthread_mutex_unlock(&big);
}

__attribute__((destructor)) static void at_exit(void)
{
    const struct cuda_software_counts *now = &counted;
    pthread_mutex_lock(&big);
    bool leaks = now->contexts || now->streams || now->events || now->modules || now->device_allocations ||
                 now->host_allocations || now->host_registrations;
    if (forked || configuration.quiet || (!leaks && !now->violations)) {
        pthread_mutex_unlock(&big);
        return;
    }
    for (unsigned i = 0; i < now->violations && i < VIOLATIONS_KEPT; i++)
        (void)fprintf(stderr, "cuda_software: violation: %s\n", violations[i]);
    if (now->violations)
        (void)fprintf(stderr, "cuda_software: %llu violations\n", (unsigned long long)now->violations);
    if (leaks)
        (void)fprintf(stderr,
                      "cuda_software: still alive: %llu contexts, %llu streams, %llu events, %llu modules, %llu device "
                      "allocations, %llu host allocations, %llu host registrations\n",
                      (unsigned long long)now->contexts, (unsigned long long)now->streams,
                      (unsigned long long)now->events, (unsigned long long)now->modules,
                      (unsigned long long)now->device_allocations, (unsigned long long)now->host_allocations,
                      (unsigned long long)now->host_registrations);
    (void)fflush(NULL);
    if (!configuration.lenient)
        _exit(EXIT_STATUS);
    pthread_mutex_unlock(&big);
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
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID: *value = 0xffff; break;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: *value = device; break;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: *value = 2; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = configuration.capability / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = configuration.capability % 10; break;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID: *value = configuration.numa; break;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED: *value = 1; break;
    default: return leave(CUDA_ERROR_INVALID_VALUE);
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
    for (CUstream stream = all_streams; stream; stream = stream->next)
        if (stream->context == context)
            clock_join(clock, stream->clock);
    await_all(context);
    clock_join(host_clock, clock);
    return leave(context->failed);
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
    ENTER(cuThreadExchangeStreamCaptureMode, INITIALIZED);
    int asked = *mode;
    if (asked < CU_STREAM_CAPTURE_MODE_GLOBAL || asked > CU_STREAM_CAPTURE_MODE_RELAXED)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *mode = capture_mode;
    capture_mode = asked;
    return leave(CUDA_SUCCESS);
}

/* ---- streams ---- */

CUresult cuStreamBeginCapture_v2(CUstream handle, int mode)
{
    ENTER(cuStreamBeginCapture, CONTEXT);
    CUstream stream = stream_of(handle, "cuStreamBeginCapture");
    if (!stream || mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return leave(stream ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE);
    if (stream == stream->context->legacy || capture.stream)
        return leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    capture.stream = stream;
    capture.mode = mode;
    capture.thread = &capture_mode;
    capture.broken = false;
    stream->capturing = true;
    return leave(CUDA_SUCCESS);
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph)
{
    ENTER(cuStreamEndCapture, CONTEXT);
    CUstream stream = stream_of(handle, "cuStreamEndCapture");
    *graph = NULL;
    if (!stream || capture.stream != stream)
        return leave(CUDA_ERROR_INVALID_VALUE);
    capture.stream = NULL;
    stream->capturing = false;
    return leave(capture.broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
}

CUresult cuStreamIsCapturing(CUstream handle, int *status)
{
    ENTER(cuStreamIsCapturing, CONTEXT);
    CUstream stream = stream_of(handle, "cuStreamIsCapturing");
    if (!stream)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    *status = !stream->capturing ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture.broken   ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return leave(CUDA_SUCCESS);
}

static CUresult stream_create(CUstream *stream, unsigned flags, int priority)
{
    if (flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    *stream = stream_new(current_context, flags, priority, false);
    counted.streams += *stream != NULL;
    return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    ENTER(cuStreamCreate, CONTEXT);
    return leave(stream_create(stream, flags, 0));
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    ENTER(cuStreamCreateWithPriority, CONTEXT);
    return leave(stream_create(stream, flags, priority));
}

CUresult cuStreamDestroy_v2(CUstream handle)
{
    ENTER(cuStreamDestroy, RELEASES);
    CUstream stream = stream_of(handle, "cuStreamDestroy");
    if (!stream || stream->own)
        return leave_released(CUDA_ERROR_INVALID_HANDLE);
    counted.streams--;
    stream_end(stream);
    return leave_released(CUDA_SUCCESS);
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context)
{
    ENTER(cuStreamGetCtx, CONTEXT);
    CUstream stream = stream_of(handle, "cuStreamGetCtx");
    if (!stream)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    *context = stream->context;
    return leave(CUDA_SUCCESS);
}

CUresult cuStreamSynchronize(CUstream handle)
{
    ENTER(cuStreamSynchronize, CONTEXT);
    CUstream stream = stream_of(handle, "cuStreamSynchronize");
    if (!stream)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    uint64_t clock[COLUMNS];
    stream_begin(stream);
    memcpy(clock, stream->clock, sizeof clock);
    await_over(stream, stream->issued);
    clock_join(host_clock, clock);
    return leave(stream->context->failed);
}

CUresult cuStreamQuery(CUstream handle)
{
    ENTER(cuStreamQuery, CONTEXT);
    CUstream stream = stream_of(handle, "cuStreamQuery");
    if (!stream)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if (!is_over(stream, stream->issued)) {
        wake_sleepers();
        return leave(CUDA_ERROR_NOT_READY);
    }
    clock_join(host_clock, stream->clock);
    return leave(stream->context->failed);
}

/* ---- events ---- */

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    ENTER(cuEventCreate, CONTEXT);
    if (flags & ~7u)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *event = event_new(current_context, flags);
    counted.events += *event != NULL;
    counted.blocking_events += *event && (flags & CU_EVENT_BLOCKING_SYNC);
    return leave(*event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuEventDestroy_v2(CUevent handle)
{
    ENTER(cuEventDestroy, RELEASES);
    CUevent event = event_of(handle, "cuEventDestroy");
    if (!event)
        return leave_released(CUDA_ERROR_INVALID_HANDLE);
    counted.events--;
    counted.blocking_events -= (event->flags & CU_EVENT_BLOCKING_SYNC) != 0;
    event_end(event);
    return leave_released(CUDA_SUCCESS);
}

CUresult cuEventRecord(CUevent handle, CUstream stream_handle)
{
    ENTER(cuEventRecord, CONTEXT);
    CUevent event = event_of(handle, "cuEventRecord");
    CUstream stream = stream_of(stream_handle, "cuEventRecord");
    if (!event || !stream || event->context != stream->context)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    event->captured = stream->capturing;
    if (stream->capturing)
        return leave(CUDA_SUCCESS);
    stream_begin(stream);
    struct operation *operation = operation_new(OPERATION_RECORD);
    operation->event = event;
    event->pending++;
    stream_issue(stream, operation);
    event->stream = stream;
    event->number = stream->issued;
    memcpy(event->clock, stream->clock, sizeof event->clock);
    return leave(CUDA_SUCCESS);
}

CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned flags)
{
    ENTER(cuStreamWaitEvent, CONTEXT);
    CUevent event = event_of(handle, "cuStreamWaitEvent");
    CUstream stream = stream_of(stream_handle, "cuStreamWaitEvent");
    if (!event || !stream)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if (flags & ~1u)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (stream->capturing && !event->captured) {
        capture.broken |= event->stream != NULL;
        return leave(event->stream ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION : CUDA_SUCCESS);
    }
    if (event->captured && !stream->capturing) {
        violation("a stream that is not capturing waits for an event of a capture, and so becomes part of the capture");
        return leave(CUDA_ERROR_CAPTURED_EVENT);
    }
    if (stream->capturing)
        return leave(CUDA_SUCCESS);
    stream_begin(stream);
    if (event->stream)
        stream_wait_for(stream, event->stream, event->number, event->clock);
    return leave(CUDA_SUCCESS);
}

CUresult cuEventQuery(CUevent handle)
{
    ENTER(cuEventQuery, CONTEXT);
    CUevent event = event_of(handle, "cuEventQuery");
    if (!event || event->captured)
        return leave(event ? CUDA_ERROR_CAPTURED_EVENT : CUDA_ERROR_INVALID_HANDLE);
    if (event->stream && !is_over(event->stream, event->number)) {
        wake_sleepers();
        return leave(CUDA_ERROR_NOT_READY);
    }
    clock_join(host_clock, event->clock);
    return leave(event->context->failed);
}

CUresult cuEventSynchronize(CUevent handle)
{
    ENTER(cuEventSynchronize, CONTEXT);
    CUevent event = event_of(handle, "cuEventSynchronize");
    if (!event || event->captured)
        return leave(event ? CUDA_ERROR_CAPTURED_EVENT : CUDA_ERROR_INVALID_HANDLE);
    uint64_t clock[COLUMNS], number = event->number;
    CUcontext context = event->context;
    memcpy(clock, event->clock, sizeof clock);
    if (event->stream)
        await_over(event->stream, number);
    clock_join(host_clock, clock);
    return leave(context->failed);
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    ENTER(cuEventElapsedTime, CONTEXT);
    CUevent from = event_of(start, "cuEventElapsedTime"), to = event_of(end, "cuEventElapsedTime");
    if (!from || !to || ((from->flags | to->flags) & CU_EVENT_DISABLE_TIMING) || !from->stream || !to->stream)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if (!is_over(from->stream, from->number) || !is_over(to->stream, to->number)) {
        wake_sleepers();
        return leave(CUDA_ERROR_NOT_READY);
    }
    *milliseconds = (float)(to->time_ms - from->time_ms);
    return leave(CUDA_SUCCESS);
}

/* ---- modules and kernels ---- */

struct CUmod_st {
    const struct kernel *kernel; /* the first kernel of the image */
    bool unloaded;
    struct CUmod_st *next;
};
static CUmodule modules;

struct CUfunc_st {
    const struct kernel *kernel;
    CUmodule module;
    struct CUfunc_st *next;
};
static CUfunction functions;

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned options, int *names, void **values)
{
    ENTER(cuModuleLoadDataEx, CONTEXT);
    const struct kernel *kernel = image ? kernel_of_image(image) : NULL;
    if (!kernel)
        return leave(image ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_VALUE);
    CUmodule made = calloc(1, sizeof *made);
    if (!made)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    *made = (struct CUmod_st){.kernel = kernel, .next = modules};
    *module = modules = made;
    counted.modules++;
    return leave(CUDA_SUCCESS);
}

static CUmodule module_of(CUmodule handle, const char *call)
{
    for (CUmodule module = modules; module; module = module->next)
        if (module == handle && !module->unloaded)
            return module;
    violation("%s uses a module that is not loaded", call);
    return NULL;
}

CUresult cuModuleUnload(CUmodule handle)
{
    ENTER(cuModuleUnload, RELEASES);
    CUmodule module = module_of(handle, "cuModuleUnload");
    if (!module)
        return leave_released(CUDA_ERROR_INVALID_HANDLE);
    for (CUstream stream = all_streams; stream; stream = stream->next) {
        const struct operation *at = stream->first;
        while (at && !(at->kind == OPERATION_LAUNCH && at->module == module))
            at = at->next;
        if (at)
            violation("cuModuleUnload of a module whose kernel a stream has not run yet");
    }
    module->unloaded = true;
    counted.modules--;
    return leave_released(CUDA_SUCCESS);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name)
{
    ENTER(cuModuleGetFunction, CONTEXT);
    CUmodule module = module_of(handle, "cuModuleGetFunction");
    const struct kernel *kernel = module ? kernel_named(module->kernel, name) : NULL;
    if (!kernel)
        return leave(module ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE);
    for (CUfunction at = functions; at; at = at->next) {
        if (at->kernel == kernel && at->module == module) {
            *function = at;
            return leave(CUDA_SUCCESS);
        }
    }
    CUfunction made = calloc(1, sizeof *made);
    if (!made)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    *made = (struct CUfunc_st){kernel, module, functions};
    *function = functions = made;
    return leave(CUDA_SUCCESS);
}

static bool launch_touches(struct operation *operation, CUstream stream)
{
    struct range ranges[RANGES_MOST];
    unsigned count = operation->kernel->ranges(operation->arguments, operation->grid, operation->block, ranges);
    struct region *regions[RANGES_MOST];
    for (unsigned i = 0; i < count; i++) {
        regions[i] = ranges[i].bytes ? region_for(ranges[i].address, ranges[i].bytes, operation->kernel->name) : NULL;
        if (ranges[i].bytes && !regions[i])
            return false;
    }
    for (unsigned i = 0; i < count; i++) {
        if (!regions[i])
            continue;
        region_access(regions[i], &ranges[i], stream, operation->kernel->name);
        operation->regions[operation->region_count++] = regions[i];
        if (regions[i]->kind == REGION_DEVICE || ranges[i].write)
            continue;
        operation->checked = region_memory(regions[i], ranges[i].address);
        operation->checked_bytes = ranges[i].bytes;
        operation->checked_sum = range_sum(operation->checked, 0, ranges[i].bytes);
    }
    return true;
}

CUresult cuLaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream_handle,
                        void **parameters, void **extra)
{
    ENTER(cuLaunchKernel, CONTEXT);
    CUfunction function = functions;
    while (function && function != handle)
        function = function->next;
    CUstream stream = stream_of(stream_handle, "cuLaunchKernel");
    if (!function || function->module->unloaded || !stream || stream->context != current_context) {
        if (!function || function->module->unloaded)
            violation("cuLaunchKernel of a function that is not loaded");
        return leave(CUDA_ERROR_INVALID_HANDLE);
    }
    uint64_t threads = (uint64_t)block_x * block_y * block_z;
    if (!grid_x || !grid_y || !grid_z || !threads || threads > 1024 || block_z > 64 || grid_x > INT32_MAX ||
        grid_y > UINT16_MAX || grid_z > UINT16_MAX || shared_bytes > 48 << 10 || !parameters || extra)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (stream->capturing)
        return leave(CUDA_SUCCESS);
    stream_begin(stream);
    struct operation *operation = operation_new(OPERATION_LAUNCH);
    operation->kernel = function->kernel;
    operation->module = function->module;
    memcpy(operation->grid, (unsigned[3]){grid_x, grid_y, grid_z}, sizeof operation->grid);
    memcpy(operation->block, (unsigned[3]){block_x, block_y, block_z}, sizeof operation->block);
    memcpy(operation->arguments, parameters[0], function->kernel->argument_bytes);
    operation->fails = fault_of(ENTRY_cuLaunchKernel, true);
    if (!launch_touches(operation, stream))
        operation->fails = CUDA_ERROR_ILLEGAL_ADDRESS; /* reported only when the kernel runs, as on a real device */
    stream_issue(stream, operation);
    return leave(CUDA_SUCCESS);
}

/* ---- finding functions ---- */

CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags, int *found)
{
    static const struct {
        const char *name;
        void (*symbol)(void);
    } table[] = {
#define CUDA_ENTRY_ADDRESS(base, symbol, arguments) {#base, (void (*)(void))symbol},
        CUDA_ENTRIES(CUDA_ENTRY_ADDRESS){"cuGetProcAddress", (void (*)(void))cuGetProcAddress_v2},
    };
    if (found)
        *found = 1; /* no such symbol */
    if (!name || !entry || flags > 2)
        return CUDA_ERROR_INVALID_VALUE;
    *entry = NULL;
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].name, name) || (i < CUDA_ENTRY_COUNT && configuration.missing[i]))
            continue;
        memcpy(entry, &table[i].symbol, sizeof *entry);
        if (found)
            *found = 0;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *name, void **entry, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(name, entry, version, flags, NULL);
}
