/* SPDX-License-Identifier: MIT */
/* entries_memory.c - the functions of the emulated driver for memory and copies. See cuda_software.h. */
#include <stdlib.h>
#include <string.h>

#include "entries.h"

/* ---- memory ---- */

CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    ENTER(cuMemGetInfo, CONTEXT);
    *total = configuration.memory;
    *available = configuration.memory - current_context->used_bytes;
    return leave(CUDA_SUCCESS);
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    ENTER(cuMemAlloc, CONTEXT);
    return leave(device_allocate(current_context, bytes, address));
}

/* A device that has failed begins no further work, but its current operations may still be running, and synchronizing
 * with it returns only the failure. So calls that free memory wait for those operations here. */
static void await_failed_context(void)
{
    const struct CUctx_st *context = current_context;
    for (CUstream stream = all_streams; context && context->failed && stream; stream = stream->next)
        if (stream->context == context)
            await_over(stream, stream->issued);
}

/* Waits for everything that is enqueued in the context, as the real driver does to free memory, whoever uses it. While
 * a test holds streams it does not, because that would never end. */
static void await_context(void)
{
    uint64_t clock[COLUMNS] = {0};
    bool held = all_held;
    for (CUstream stream = all_streams; stream; stream = stream->next) {
        held |= stream->held;
        if (stream->context == current_context)
            clock_join(clock, stream->clock);
    }
    for (CUstream stream = all_streams; stream && !held;) {
        bool waits = stream->context == current_context && !is_over(stream, stream->issued);
        if (waits)
            await_over(stream, stream->issued);
        stream = waits ? all_streams : stream->next; /* the list may have changed meanwhile */
    }
    if (!held)
        clock_join(host_clock, clock);
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    ENTER(cuMemFree, RELEASES);
    await_failed_context();
    CUresult result = device_free(address); /* first, because freeing memory that is in use is a fault of the caller */
    if (address && !result)
        await_context();
    return leave_released(result);
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags)
{
    ENTER(cuMemHostAlloc, CONTEXT);
    return leave(flags & ~7u ? CUDA_ERROR_INVALID_VALUE : host_pin(current_context, NULL, bytes, address));
}

CUresult cuMemFreeHost(void *address)
{
    ENTER(cuMemFreeHost, RELEASES);
    await_failed_context();
    return leave_released(host_unpin(address, REGION_HOST_ALLOCATED));
}

CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags)
{
    ENTER(cuMemHostRegister, CONTEXT);
    return leave(flags & ~15u ? CUDA_ERROR_INVALID_VALUE : host_pin(current_context, address, bytes, NULL));
}

CUresult cuMemHostUnregister(void *address)
{
    ENTER(cuMemHostUnregister, RELEASES);
    await_failed_context();
    return leave_released(host_unpin(address, REGION_HOST_REGISTERED));
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned flags)
{
    ENTER(cuMemHostGetDevicePointer, CONTEXT);
    struct region *region = region_of((uint64_t)(uintptr_t)host, 1);
    if (!region || region->kind == REGION_DEVICE || flags)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *device = (CUdeviceptr)(uintptr_t)host;
    return leave(CUDA_SUCCESS);
}

CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr address)
{
    ENTER(cuPointerGetAttribute, CONTEXT);
    const struct region *region = region_of(address, 1);
    if (!region)
        return leave(CUDA_ERROR_INVALID_VALUE);
    bool device = region->kind == REGION_DEVICE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = region->context;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = address;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(bool *)data = false;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = region->context->device;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (device)
            return leave(CUDA_ERROR_INVALID_VALUE);
        *(void **)data = (void *)(uintptr_t)address;
        break;
    default:
        return leave(CUDA_ERROR_INVALID_VALUE);
    }
    return leave(CUDA_SUCCESS);
}

/* ---- copies ---- */

enum copy_kind { HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE };

struct copy {
    const char *call;
    enum cuda_entry entry;
    enum copy_kind kind;
    uint64_t into, from, bytes;
};

/* Finds the bytes of one side of a copy, and its region if it has one. Returns false if the memory is not valid there.
 * */
static bool copy_side(const struct copy *copy, bool write, CUstream stream, struct operation *operation,
                      uint8_t **memory)
{
    struct range range = {write ? copy->into : copy->from, copy->bytes, write};
    bool device = copy->kind == DEVICE_TO_DEVICE || (copy->kind == HOST_TO_DEVICE) == write;
    struct region *region =
        device ? region_for(range.address, range.bytes, copy->call) : region_of(range.address, range.bytes);
    *memory = (uint8_t *)(uintptr_t)range.address;
    if (device && !region)
        return false;
    if (!region)
        return true; /* pageable */
    if (device != (region->kind == REGION_DEVICE)) {
        violation("%s: %s is %s memory", copy->call, write ? "what it writes" : "what it reads",
                  device ? "host" : "device");
        return false;
    }
    *memory = region_memory(region, range.address);
    operation->regions[operation->region_count++] = region;
    region_access(region, &range, stream, copy->call);
    return true;
}

static CUresult copy_issue(const struct copy *copy, CUstream handle, CUstream *used)
{
    CUstream stream = *used = stream_of(handle, copy->call);
    if (!stream || stream->context != current_context)
        return CUDA_ERROR_INVALID_HANDLE;
    if (capture_implied(stream))
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (!copy->bytes || stream->capture)
        return CUDA_SUCCESS;
    stream_begin(stream);
    struct operation *operation = operation_new(OPERATION_COPY);
    uint8_t *from;
    if (!copy_side(copy, false, stream, operation, &from) ||
        !copy_side(copy, true, stream, operation, &operation->into)) {
        operation->kind = OPERATION_WAIT; /* has no effect: it waits for its own stream */
        operation->on = stream;
        operation->region_count = 0;
        stream_issue(stream, operation);
        return CUDA_ERROR_INVALID_VALUE;
    }
    operation->from = from;
    operation->bytes = copy->bytes;
    operation->fails = fault_of(copy->entry, true);
    if (copy->kind == HOST_TO_DEVICE && operation->region_count == 2) {
        operation->checked = from;
        operation->checked_bytes = copy->bytes;
        operation->checked_sum = range_sum(from, 0, copy->bytes);
    } else if (copy->kind == HOST_TO_DEVICE) {
        operation->snapshot = malloc(copy->bytes);
        if (!operation->snapshot)
            abort();
        operation->from = memcpy(operation->snapshot, from, copy->bytes);
        counted.pageable_copies++;
    }
    bool pageable = copy->kind == DEVICE_TO_HOST && operation->region_count == 1;
    stream_issue(stream, operation);
    counted.pageable_copies += pageable;
    if (pageable)
        await_over(stream, stream->issued);
    return CUDA_SUCCESS;
}

static CUresult copy_and_wait(const struct copy *copy)
{
    CUstream stream;
    counted.synchronizations++;
    uint64_t pageable = counted.pageable_copies, clock[COLUMNS];
    CUresult result = copy_issue(copy, NULL, &stream);
    counted.pageable_copies = pageable;
    if (result)
        return result;
    memcpy(clock, stream->clock, sizeof clock);
    await_over(stream, stream->issued);
    clock_join(host_clock, clock);
    return stream->context->failed;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr into, const void *from, size_t bytes)
{
    ENTER(cuMemcpyHtoD, CONTEXT);
    const struct copy copy = {"cuMemcpyHtoD", ENTRY_cuMemcpyHtoD,        HOST_TO_DEVICE,
                              into,           (uint64_t)(uintptr_t)from, bytes};
    return leave(copy_and_wait(&copy));
}

CUresult cuMemcpyDtoH_v2(void *into, CUdeviceptr from, size_t bytes)
{
    ENTER(cuMemcpyDtoH, CONTEXT);
    const struct copy copy = {"cuMemcpyDtoH", ENTRY_cuMemcpyDtoH, DEVICE_TO_HOST, (uint64_t)(uintptr_t)into, from,
                              bytes};
    return leave(copy_and_wait(&copy));
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr into, const void *from, size_t bytes, CUstream stream)
{
    ENTER_WITH(cuMemcpyHtoDAsync, CONTEXT, stream, NULL);
    const struct copy copy = {
        "cuMemcpyHtoDAsync", ENTRY_cuMemcpyHtoDAsync, HOST_TO_DEVICE, into, (uint64_t)(uintptr_t)from, bytes};
    return leave(copy_issue(&copy, stream, &stream));
}

CUresult cuMemcpyDtoHAsync_v2(void *into, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER_WITH(cuMemcpyDtoHAsync, CONTEXT, stream, NULL);
    const struct copy copy = {
        "cuMemcpyDtoHAsync", ENTRY_cuMemcpyDtoHAsync, DEVICE_TO_HOST, (uint64_t)(uintptr_t)into, from, bytes};
    return leave(copy_issue(&copy, stream, &stream));
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr into, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER_WITH(cuMemcpyDtoDAsync, CONTEXT, stream, NULL);
    const struct copy copy = {"cuMemcpyDtoDAsync", ENTRY_cuMemcpyDtoDAsync, DEVICE_TO_DEVICE, into, from, bytes};
    return leave(copy_issue(&copy, stream, &stream));
}

CUresult cuMemsetD8Async(CUdeviceptr into, unsigned char value, size_t bytes, CUstream handle)
{
    ENTER_WITH(cuMemsetD8Async, CONTEXT, handle, NULL);
    CUstream stream = stream_of(handle, "cuMemsetD8Async");
    if (!stream || stream->context != current_context)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if (capture_implied(stream))
        return leave(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    struct region *region = bytes ? region_for(into, bytes, "cuMemsetD8Async") : NULL;
    if (stream->capture)
        return leave(CUDA_SUCCESS);
    if (!region)
        return leave(bytes ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
    const struct range range = {into, bytes, true};
    stream_begin(stream);
    struct operation *operation = operation_new(OPERATION_SET);
    region_access(region, &range, stream, "cuMemsetD8Async");
    operation->into = region_memory(region, into);
    operation->bytes = bytes;
    operation->value = value;
    operation->regions[operation->region_count++] = region;
    stream_issue(stream, operation);
    return leave(CUDA_SUCCESS);
}
