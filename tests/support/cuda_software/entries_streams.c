/* entries_streams.c - the functions of the emulated driver for streams, events, and captures. See cuda_software.h. */
#include <string.h>

#include "entries.h"

/* ---- graphs: one capture at a time; captured work is checked and then ignored ---- */

static __thread int capture_mode;

static struct {
    CUstream stream; /* NULL: nothing is being captured */
    int mode;
    const void *thread; /* the thread that began it, as the address of a thread-local variable */
    bool broken;
} capture;

/* Calls that a thread must not make during a capture unless its mode is relaxed. */
static const bool unsafe[CUDA_ENTRY_COUNT] = {
    [ENTRY_cuMemAlloc] = true,         [ENTRY_cuMemFree] = true,           [ENTRY_cuMemHostAlloc] = true,
    [ENTRY_cuMemFreeHost] = true,      [ENTRY_cuMemHostRegister] = true,   [ENTRY_cuMemHostUnregister] = true,
    [ENTRY_cuMemcpyHtoD] = true,       [ENTRY_cuMemcpyDtoH] = true,        [ENTRY_cuEventQuery] = true,
    [ENTRY_cuEventSynchronize] = true, [ENTRY_cuStreamSynchronize] = true, [ENTRY_cuStreamQuery] = true,
    [ENTRY_cuCtxSynchronize] = true,   [ENTRY_cuModuleLoadDataEx] = true,  [ENTRY_cuModuleUnload] = true,
    [ENTRY_cuStreamDestroy] = true,    [ENTRY_cuEventDestroy] = true,
};

bool breaks_capture(enum cuda_entry entry)
{
    if (!capture.stream || !unsafe[entry] || capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    if (capture.thread == &capture_mode ? capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED
                                        : capture.mode != CU_STREAM_CAPTURE_MODE_GLOBAL)
        return false;
    capture.broken = true;
    return true;
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
    counted.streams_created += *stream != NULL;
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
    counted.synchronizations++;
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
    counted.events_created += *event != NULL;
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
    counted.synchronizations++;
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
