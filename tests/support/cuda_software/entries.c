/* SPDX-License-Identifier: MIT */
/* entries.c - the functions of the emulated driver for devices and contexts. See cuda_software.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "entries.h"

#define STACK_MOST 16

bool forked;
static CUcontext primaries[DEVICES_MOST]; /* NULL: not retained */
static CUcontext all_contexts;            /* also those that have ended, because handles may still name them */
static unsigned long long last_id;
static bool initialized;

__thread CUcontext current_context, current_handle;
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
    else if (!result && needs >= CONTEXT && !current_context->id)
        result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    else if (!result && breaks_capture(entry))
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    else if (!result && needs == CONTEXT)
        result = current_context->failed;
    if (result)
        pthread_mutex_unlock(&big);
    return result;
}

CUresult enter_with(enum cuda_entry entry, enum needs needs, CUstream stream, CUevent event)
{
    CUresult result = enter(entry, needs);
    if (result != CUDA_ERROR_CONTEXT_IS_DESTROYED)
        return result;
    /* A real driver follows the pointer before it returns, or does not: both happen. */
    pthread_mutex_lock(&big);
    if ((uintptr_t)stream > (uintptr_t)CU_STREAM_PER_THREAD)
        (void)stream_of(stream, entry_names[entry]);
    if (event)
        (void)event_of(event, entry_names[entry]);
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

CUresult cuDeviceGetUuid_v2(unsigned char uuid[16], CUdevice device)
{
    ENTER(cuDeviceGetUuid, INITIALIZED);
    if (!is_device(device))
        return leave(CUDA_ERROR_INVALID_DEVICE);
    memset(uuid, 0xe0, 15);
    uuid[15] = (unsigned char)device;
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
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
        *value = configuration.pageable;
        break;
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES:
        *value = configuration.host_tables;
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

void await_all(CUcontext context)
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

/* Makes a context, or makes one again that was reset. */
static CUresult context_make(CUcontext *context, CUdevice device)
{
    CUcontext made = primaries[device];
    if (!made) {
        made = calloc(1, sizeof *made);
        if (!made)
            return CUDA_ERROR_OUT_OF_MEMORY;
        *made = (struct CUctx_st){.device = device, .primary = made, .next = all_contexts};
        primaries[device] = all_contexts = made;
    }
    if (!made->id) {
        made->legacy = stream_new(made, CU_STREAM_DEFAULT, 0, true);
        if (!made->legacy)
            return CUDA_ERROR_OUT_OF_MEMORY;
        made->id = ++last_id;
        made->failed = CUDA_SUCCESS;
        counted.contexts_made++;
    }
    made->retained++;
    counted.contexts++;
    *context = made;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRetain, INITIALIZED);
    return leave(is_device(device) ? context_make(context, device) : CUDA_ERROR_INVALID_DEVICE);
}

/* Destroys everything that is left in the context, as the real driver does, and reports it as a leak. Its handle is not
 * used again. */
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
    streams_lost(context, true);
    context->id = 0;
    primaries[context->device] = NULL;
}

static CUresult context_release(CUdevice device)
{
    CUcontext context = primaries[device];
    if (!context || !context->retained) {
        violation("cuDevicePrimaryCtxRelease of a context that is not retained");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    counted.contexts--;
    if (!--context->retained)
        context_end(context);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRelease, INITIALIZED);
    return leave(is_device(device) ? context_release(device) : CUDA_ERROR_INVALID_DEVICE);
}

/* Everything in the context is gone, but it stays retained, and its handle stays valid: the next retain makes the
 * context again, with another id. Pointers to what was in it dangle. */
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    ENTER(cuDevicePrimaryCtxReset, INITIALIZED);
    CUcontext context = is_device(device) ? primaries[device] : NULL;
    if (!is_device(device) || !context || !context->id)
        return leave(is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
    if (!is_stuck(context))
        await_all(context);
    streams_lost(context, false);
    streams_lost(context, true);
    modules_lost(context);
    memory_lost(context);
    context->id = 0;
    return leave(CUDA_SUCCESS);
}

static CUgreenCtx greens; /* also those that were destroyed */

static CUresult check_context(CUcontext context, const char *call)
{
    for (CUcontext at = all_contexts; at; at = at->next)
        if (at == context)
            return at->id ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    for (CUgreenCtx green = greens; green; green = green->next)
        if (&green->handle == context)
            return green->destroyed || !context->primary->id ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
    violation("%s uses %p, which is not a context", call, (void *)context);
    return CUDA_ERROR_INVALID_CONTEXT;
}

static void set_current(CUcontext context)
{
    current_handle = context;
    current_context = context ? context->primary : NULL;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
    ENTER(cuCtxGetId, INITIALIZED);
    context = context ? context : current_handle;
    CUresult result = context ? check_context(context, "cuCtxGetId") : CUDA_ERROR_INVALID_CONTEXT;
    if (!result)
        *id = context->green ? context->id : context->primary->id;
    context_asked(result ? 0 : *id);
    return leave(result);
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    ENTER(cuCtxPushCurrent, INITIALIZED);
    CUresult result = check_context(context, "cuCtxPushCurrent");
    if (result)
        return leave(result);
    if (stack_depth == STACK_MOST) {
        violation("cuCtxPushCurrent: %d contexts are pushed and none is popped", STACK_MOST);
        return leave(CUDA_ERROR_INVALID_VALUE);
    }
    stack[stack_depth++] = current_handle;
    set_current(context);
    return leave(CUDA_SUCCESS);
}

/* What is below the current context on the thread's stack becomes current. A context that was set without a push is at
 * the bottom of the stack, with nothing below. */
static void pop(void)
{
    set_current(stack_depth ? stack[--stack_depth] : NULL);
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    ENTER(cuCtxPopCurrent, INITIALIZED);
    if (!stack_depth && !current_handle) {
        violation("cuCtxPopCurrent: no context is current");
        return leave(CUDA_ERROR_INVALID_CONTEXT);
    }
    if (context)
        *context = current_handle;
    pop();
    return leave(CUDA_SUCCESS);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    ENTER(cuCtxSetCurrent, INITIALIZED);
    CUresult result = context ? check_context(context, "cuCtxSetCurrent") : CUDA_SUCCESS;
    if (!result && context)
        set_current(context);
    else if (!result)
        pop();
    return leave(result);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    ENTER(cuCtxGetCurrent, INITIALIZED);
    *context = current_handle;
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
    if (capture_in(context)) /* not even in the relaxed mode: what is captured cannot be waited for */
        return leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    uint64_t clock[COLUMNS] = {0};
    counted.synchronizations++;
    for (CUstream stream = all_streams; stream; stream = stream->next)
        if (stream->context == context)
            clock_join(clock, stream->clock);
    await_all(context);
    clock_join(host_clock, clock);
    return leave(context->failed);
}

/* ---- green contexts: a part of the processors, in the primary context's memory ---- */

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, int type)
{
    ENTER(cuDeviceGetDevResource, INITIALIZED);
    if (!is_device(device) || type != CU_DEV_RESOURCE_TYPE_SM)
        return leave(is_device(device) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE);
    memset(resource, 0, sizeof *resource);
    resource->type = type;
    resource->sm.smCount = 132;
    resource->sm.minSmPartitionSize = resource->sm.smCoscheduledAlignment = 8;
    return leave(CUDA_SUCCESS);
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *description, CUdevResource *resources, unsigned count)
{
    ENTER(cuDevResourceGenerateDesc, INITIALIZED);
    if (!description || !resources || count != 1 || resources->type != CU_DEV_RESOURCE_TYPE_SM)
        return leave(CUDA_ERROR_INVALID_VALUE);
    static char descriptions;
    *description = (CUdevResourceDesc)&descriptions; /* all green contexts are alike here */
    return leave(CUDA_SUCCESS);
}

CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc description, CUdevice device, unsigned flags)
{
    ENTER(cuGreenCtxCreate, INITIALIZED);
    if (!is_device(device) || !description || flags != CU_GREEN_CTX_DEFAULT_STREAM)
        return leave(is_device(device) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE);
    CUgreenCtx made = calloc(1, sizeof *made);
    CUcontext primary;
    if (!made || context_make(&primary, device)) {
        free(made);
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    made->handle = (struct CUctx_st){.device = device, .primary = primary, .green = made, .id = ++last_id};
    made->next = greens;
    *green = greens = made;
    return leave(CUDA_SUCCESS);
}

static bool is_green(CUgreenCtx green, const char *call)
{
    for (CUgreenCtx at = greens; at; at = at->next)
        if (at == green && !at->destroyed)
            return true;
    violation("%s uses %p, which is not a green context", call, (void *)green);
    return false;
}

CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
    ENTER(cuGreenCtxDestroy, INITIALIZED);
    if (!is_green(green, "cuGreenCtxDestroy"))
        return leave(CUDA_ERROR_INVALID_CONTEXT);
    green->destroyed = true;
    for (CUstream stream = all_streams; stream; stream = stream->next)
        if (stream->green == green && !stream->destroyed)
            violation("a green context is destroyed with a stream that was not");
    return leave(context_release(green->handle.device));
}

CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green)
{
    ENTER(cuCtxFromGreenCtx, INITIALIZED);
    if (!is_green(green, "cuCtxFromGreenCtx"))
        return leave(CUDA_ERROR_INVALID_CONTEXT);
    *context = &green->handle;
    return leave(CUDA_SUCCESS);
}

CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned flags, int priority)
{
    ENTER(cuGreenCtxStreamCreate, INITIALIZED);
    if (!is_green(green, "cuGreenCtxStreamCreate") || flags != CU_STREAM_NON_BLOCKING)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *stream = stream_new(green->handle.primary, flags, priority, false);
    if (!*stream)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    (*stream)->green = green;
    counted.streams++;
    counted.streams_created++;
    return leave(CUDA_SUCCESS);
}
