/* SPDX-License-Identifier: MIT */
/* entries_streams.c - the functions of the emulated driver for streams, events, and captures. See cuda_software.h. */
#include <stdlib.h>
#include <string.h>

#include "entries.h"

/* ---- graphs: captured work is checked and then ignored ---- */

static __thread int capture_mode;
static struct capture *captures; /* in progress */
static uint64_t last_capture;

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
    bool broken = false;
    if (!unsafe[entry] || capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    for (struct capture *capture = captures; capture; capture = capture->next) {
        bool ours = capture->thread == &capture_mode;
        bool forbids =
            ours ? capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                 : capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        capture->broken |= forbids;
        broken |= forbids;
    }
    return broken;
}

bool capture_in(CUcontext context)
{
    bool found = false;
    for (struct capture *capture = captures; capture; capture = capture->next) {
        if (capture->stream->context == context)
            found = capture->broken = true;
    }
    return found;
}

/* Returns whether the stream is the legacy one, and a blocking stream of its context captures. */
static bool is_implied(CUstream stream, bool breaks)
{
    bool found = false;
    for (struct capture *capture = captures; capture; capture = capture->next) {
        const CUstream other = capture->stream;
        if (stream != stream->context->legacy || other->context != stream->context ||
            (other->flags & CU_STREAM_NON_BLOCKING))
            continue;
        found = true;
        capture->broken |= breaks;
    }
    return found;
}

bool capture_implied(CUstream stream)
{
    return is_implied(stream, true);
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
    ENTER_WITH(cuStreamBeginCapture, CONTEXT, handle, NULL);
    CUstream stream = stream_of(handle, "cuStreamBeginCapture");
    if (!stream || mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return leave(stream ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE);
    if (stream == stream->context->legacy || stream->capture)
        return leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    struct capture *made = calloc(1, sizeof *made);
    if (!made)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    *made = (struct capture){++last_capture, stream, mode, &capture_mode, false, captures};
    captures = stream->capture = made;
    return leave(CUDA_SUCCESS);
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph)
{
    ENTER_WITH(cuStreamEndCapture, CONTEXT, handle, NULL);
    CUstream stream = stream_of(handle, "cuStreamEndCapture");
    struct capture *capture = stream ? stream->capture : NULL, **at = &captures;
    *graph = NULL;
    if (!capture)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != &capture_mode) {
        capture->broken = true;
        return leave(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    }
    CUresult result = capture->broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    while (*at != capture)
        at = &(*at)->next;
    *at = capture->next;
    stream->capture = NULL;
    free(capture);
    return leave(result);
}

CUresult cuStreamIsCapturing(CUstream handle, int *status)
{
    ENTER_WITH(cuStreamIsCapturing, CONTEXT, handle, NULL);
    CUstream stream = stream_of(handle, "cuStreamIsCapturing");
    if (!stream)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if (is_implied(stream, false))
        return leave(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    *status = !stream->capture          ? CU_STREAM_CAPTURE_STATUS_NONE
              : stream->capture->broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                        : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return leave(CUDA_SUCCESS);
}

/* Returns why the host cannot wait for a stream or ask about it, or 0. */
static CUresult not_askable(CUstream stream)
{
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (capture_implied(stream))
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (stream->capture)
        stream->capture->broken = true;
    return stream->capture ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

static CUresult stream_create(CUstream *stream, unsigned flags, int priority)
{
    if (flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    if (current_handle->green && !(flags & CU_STREAM_NON_BLOCKING))
        return CUDA_ERROR_INVALID_VALUE;
    *stream = stream_new(current_context, flags, priority, false);
    if (*stream)
        (*stream)->green = current_handle->green;
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
    ENTER_WITH(cuStreamDestroy, RELEASES, handle, NULL);
    CUstream stream = stream_of(handle, "cuStreamDestroy");
    if (!stream || stream->own)
        return leave_released(CUDA_ERROR_INVALID_HANDLE);
    counted.streams--;
    stream_end(stream);
    return leave_released(CUDA_SUCCESS);
}

/* Finds a stream and its green context; the default streams are those of the context that is current. */
static CUresult green_of(CUstream handle, const char *call, CUstream *stream, CUgreenCtx *green)
{
    *stream = stream_of(handle, call);
    if (!*stream)
        return CUDA_ERROR_INVALID_HANDLE;
    *green = (*stream)->own ? current_handle->green : (*stream)->green;
    return *green && (*green)->destroyed ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context)
{
    ENTER_WITH(cuStreamGetCtx, CONTEXT, handle, NULL);
    CUstream stream;
    CUgreenCtx green;
    CUresult result = green_of(handle, "cuStreamGetCtx", &stream, &green);
    if (!result)
        *context = green ? &green->handle : stream->context;
    return leave(result);
}

CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *context, CUgreenCtx *green)
{
    ENTER_WITH(cuStreamGetCtx_v2, CONTEXT, handle, NULL);
    CUstream stream;
    CUresult result = green_of(handle, "cuStreamGetCtx", &stream, green);
    if (!result)
        *context = stream->context;
    return leave(result);
}

CUresult cuStreamGetGreenCtx(CUstream handle, CUgreenCtx *green)
{
    ENTER_WITH(cuStreamGetGreenCtx, CONTEXT, handle, NULL);
    CUstream stream;
    return leave(green_of(handle, "cuStreamGetGreenCtx", &stream, green));
}

CUresult cuStreamSynchronize(CUstream handle)
{
    ENTER_WITH(cuStreamSynchronize, CONTEXT, handle, NULL);
    CUstream stream = stream_of(handle, "cuStreamSynchronize");
    CUresult refused = not_askable(stream);
    if (refused)
        return leave(refused);
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
    ENTER_WITH(cuStreamQuery, CONTEXT, handle, NULL);
    CUstream stream = stream_of(handle, "cuStreamQuery");
    CUresult refused = not_askable(stream);
    if (refused)
        return leave(refused);
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
    ENTER_WITH(cuEventDestroy, RELEASES, NULL, handle);
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
    ENTER_WITH(cuEventRecord, CONTEXT, stream_handle, handle);
    CUevent event = event_of(handle, "cuEventRecord");
    CUstream stream = stream_of(stream_handle, "cuEventRecord");
    if (!event || !stream || event->context != stream->context)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if (capture_implied(stream))
        return leave(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    event->captured = stream->capture ? stream->capture->id : 0;
    if (stream->capture)
        return leave(CUDA_SUCCESS);
    stream_begin(stream);
    struct operation *operation = operation_new(OPERATION_RECORD);
    operation->event = event;
    event->pending++;
    stream_issue(stream, operation);
    event->stream = stream;
    event->number = stream->issued;
    memcpy(event->clock, stream->clock, sizeof event->clock);
    context_asked(0);
    return leave(CUDA_SUCCESS);
}

CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned flags)
{
    ENTER_WITH(cuStreamWaitEvent, CONTEXT, stream_handle, handle);
    CUevent event = event_of(handle, "cuStreamWaitEvent");
    CUstream stream = stream_of(stream_handle, "cuStreamWaitEvent");
    if (!event || !stream)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if (flags & ~1u)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (capture_implied(stream))
        return leave(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (stream->capture && !event->captured) {
        stream->capture->broken |= event->stream != NULL;
        return leave(event->stream ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION : CUDA_SUCCESS);
    }
    if (stream->capture && event->captured != stream->capture->id) {
        for (struct capture *capture = captures; capture; capture = capture->next)
            capture->broken |= capture->id == event->captured || capture == stream->capture;
        return leave(CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    if (event->captured && !stream->capture) {
        violation("a stream that is not capturing waits for an event of a capture, and so becomes part of the capture");
        return leave(CUDA_ERROR_CAPTURED_EVENT);
    }
    if (stream->capture)
        return leave(CUDA_SUCCESS);
    stream_begin(stream);
    if (event->stream)
        stream_wait_for(stream, event->stream, event->number, event->clock);
    return leave(CUDA_SUCCESS);
}

CUresult cuEventQuery(CUevent handle)
{
    ENTER_WITH(cuEventQuery, CONTEXT, NULL, handle);
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
    ENTER_WITH(cuEventSynchronize, CONTEXT, NULL, handle);
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
    context_asked(0);
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
