/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * The emulated driver (support/cuda_software): it behaves as the manual of the real driver says, and it finds the
 * faults that it is meant to find. The tests of the device path rely on it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/expand_ptx.h"
#include "platform/os.h"
#include "platform/process.h"
#include "staging/expand_arguments.h"
#include "support/cuda_software/launches.h"
#include "support/scratch.h"
#include "support/software_driver.h"

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif

#define BYTES 20000

static const struct software_driver *cu;
static CUcontext context;
static CUstream one, two;
static CUdeviceptr device, other;
static uint8_t *host; /* pinned, BYTES */

static void fine(CUresult result)
{
    const char *name = "?";
    (void)cu->cuGetErrorName(result, &name);
    if (result)
        fail_msg("%s", name);
}

static int setup(void **unused)
{
    (void)unused;
    (void)cu->configure("quiet");
    fine(cu->cuInit(0));
    fine(cu->cuDevicePrimaryCtxRetain(&context, 0));
    fine(cu->cuCtxPushCurrent(context));
    fine(cu->cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    fine(cu->cuStreamCreateWithPriority(&two, CU_STREAM_NON_BLOCKING, -5));
    fine(cu->cuMemAlloc(&device, BYTES));
    fine(cu->cuMemAlloc(&other, BYTES));
    host = malloc(BYTES);
    for (unsigned i = 0; i < BYTES; i++)
        host[i] = (uint8_t)(i * 7 + i / 256);
    fine(cu->cuMemHostRegister(host, BYTES, 0));
    cu->reset();
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    cu->hold(0);
    (void)cu->configure("quiet");
    fine(cu->cuCtxSynchronize());
    fine(cu->cuMemFree(device));
    fine(cu->cuMemFree(other));
    fine(cu->cuMemHostUnregister(host));
    fine(cu->cuStreamDestroy(one));
    fine(cu->cuStreamDestroy(two));
    fine(cu->cuCtxPopCurrent(NULL));
    fine(cu->cuDevicePrimaryCtxRelease(0));
    free(host);
    software_driver_is_content();
    software_driver_is_empty();
    return 0;
}

static CUevent new_event(void)
{
    CUevent event;
    fine(cu->cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING));
    return event;
}

static void read_back(uint8_t *into, CUdeviceptr from, size_t bytes, CUstream stream)
{
    fine(cu->cuMemcpyDtoHAsync(into, from, bytes, stream));
    fine(cu->cuStreamSynchronize(stream));
}

/* ---- semantics ---- */

static void a_copy_is_late_and_whole(void **unused)
{
    (void)unused;
    uint8_t back[BYTES];
    for (unsigned seed = 0; seed < 8; seed++) {
        char text[64];
        (void)snprintf(text, sizeof text, "quiet,delay=%u,seed=%u", seed * 100, seed);
        assert_true(cu->configure(text));
        cu->hold(1);
        fine(cu->cuMemcpyHtoDAsync(device, host, BYTES, one));
        assert_int_equal(cu->cuStreamQuery(one), CUDA_ERROR_NOT_READY);
        cu->hold(0);
        fine(cu->cuStreamSynchronize(one));
        fine(cu->cuStreamQuery(one));
        read_back(back, device, BYTES, two);
        assert_memory_equal(back, host, BYTES);
        fine(cu->cuMemsetD8Async(device, (unsigned char)seed, BYTES, two));
        fine(cu->cuMemcpyDtoDAsync(other, device, BYTES, two));
        read_back(back, other, BYTES, two);
        for (unsigned i = 0; i < BYTES; i++)
            assert_int_equal(back[i], seed);
    }
    software_driver_is_content();
}

static void an_event_marks_where_it_was_recorded(void **unused)
{
    (void)unused;
    CUevent event = new_event(), never = new_event();
    fine(cu->cuEventQuery(never));
    fine(cu->cuEventSynchronize(never));
    fine(cu->cuStreamWaitEvent(two, never, 0));
    fine(cu->cuStreamSynchronize(two));

    /* stream two waits for the first record; the second record, on a stream that is held, does not affect that wait */
    CUstream third;
    fine(cu->cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
    fine(cu->cuMemcpyHtoDAsync(device, host, BYTES, one));
    fine(cu->cuEventRecord(event, one));
    fine(cu->cuStreamWaitEvent(two, event, 0));
    cu->hold_stream(third, 1);
    fine(cu->cuMemsetD8Async(other, 1, BYTES, third));
    fine(cu->cuEventRecord(event, third));
    assert_int_equal(cu->cuEventQuery(event), CUDA_ERROR_NOT_READY);
    fine(cu->cuMemsetD8Async(device, 1, BYTES, two));
    fine(cu->cuStreamSynchronize(two));
    assert_int_equal(cu->cuEventQuery(event), CUDA_ERROR_NOT_READY);
    cu->hold_stream(third, 0);
    fine(cu->cuEventSynchronize(event));
    fine(cu->cuEventQuery(event));

    /* a wait delays the work enqueued after it, and no other */
    cu->hold_stream(one, 1);
    fine(cu->cuMemsetD8Async(device, 2, BYTES, one));
    fine(cu->cuEventRecord(event, one));
    fine(cu->cuMemsetD8Async(other, 3, 100, two));
    fine(cu->cuEventRecord(never, two));
    fine(cu->cuStreamWaitEvent(two, event, 0));
    fine(cu->cuMemsetD8Async(device, 3, 100, two));
    fine(cu->cuEventSynchronize(never));
    assert_int_equal(cu->cuStreamQuery(two), CUDA_ERROR_NOT_READY);
    cu->hold_stream(one, 0);
    fine(cu->cuStreamSynchronize(two));
    fine(cu->cuEventQuery(event));
    fine(cu->cuStreamDestroy(third));
    fine(cu->cuEventDestroy(event));
    fine(cu->cuEventDestroy(never));
    software_driver_is_content();
}

static void the_default_stream_waits_for_blocking_ones(void **unused)
{
    (void)unused;
    CUstream blocking;
    fine(cu->cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    cu->hold_stream(one, 1);
    fine(cu->cuMemsetD8Async(other, 1, BYTES, one));
    fine(cu->cuMemsetD8Async(device, 1, BYTES, NULL)); /* does not wait for a non-blocking stream */
    fine(cu->cuStreamSynchronize(NULL));
    cu->hold_stream(one, 0);
    cu->hold_stream(blocking, 1);
    fine(cu->cuMemsetD8Async(device, 2, BYTES, blocking));
    fine(cu->cuMemsetD8Async(device, 3, BYTES, CU_STREAM_LEGACY));
    fine(cu->cuMemsetD8Async(device, 4, BYTES, CU_STREAM_PER_THREAD)); /* waits for the legacy default stream */
    assert_int_equal(cu->cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    assert_int_equal(cu->cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
    cu->hold_stream(blocking, 0);
    fine(cu->cuStreamSynchronize(NULL));
    uint8_t back[BYTES];
    read_back(back, device, BYTES, CU_STREAM_PER_THREAD);
    for (unsigned i = 0; i < BYTES; i++)
        assert_int_equal(back[i], 4);
    fine(cu->cuStreamDestroy(blocking));
    software_driver_is_content();
}

/* A lazy stream carries out only what something waits for, however much time passes. */
static void a_lazy_stream_runs_only_what_is_waited_for(void **unused)
{
    (void)unused;
    CUevent first = new_event(), second = new_event(), third = new_event();
    uint8_t back[BYTES];
    assert_true(cu->configure("quiet,lazy"));
    fine(cu->cuMemcpyHtoDAsync(device, host, BYTES, one));
    fine(cu->cuEventRecord(first, one));
    fine(cu->cuMemsetD8Async(device, 1, 10, one));
    fine(cu->cuEventRecord(second, one));
    fine(cu->cuMemsetD8Async(device + 100, 2, 10, one));
    fine(cu->cuEventRecord(third, one));
    fine(cu->cuMemsetD8Async(other, 3, BYTES, two));
    fine(cu->cuStreamSynchronize(two));
    assert_int_equal(cu->cuEventQuery(first), CUDA_ERROR_NOT_READY);
    fine(cu->cuEventSynchronize(first));
    fine(cu->cuEventQuery(first));
    assert_int_equal(cu->cuEventQuery(second), CUDA_ERROR_NOT_READY);
    fine(cu->cuStreamWaitEvent(two, second, 0)); /* takes effect only once something waits for stream two */
    fine(cu->cuMemcpyDtoDAsync(other, device, 5, two));
    assert_int_equal(cu->cuEventQuery(second), CUDA_ERROR_NOT_READY);
    read_back(back, other, 10, two);
    assert_memory_equal(back, "\1\1\1\1\1\3\3\3\3\3", 10);
    assert_int_equal(cu->cuEventQuery(third), CUDA_ERROR_NOT_READY);
    fine(cu->cuEventSynchronize(third));
    fine(cu->cuEventDestroy(first));
    fine(cu->cuEventDestroy(second));
    fine(cu->cuEventDestroy(third));
    software_driver_is_content();
}

static void a_kernel_runs_when_the_stream_reaches_it(void **unused)
{
    (void)unused;
    CUmodule module;
    CUfunction function;
    uint32_t back[100], words[100];
    assert_int_equal(cu->cuModuleLoadDataEx(&module, "// another", 0, NULL, NULL), CUDA_ERROR_INVALID_PTX);
    fine(cu->cuModuleLoadDataEx(&module, CUDA_SOFTWARE_IMAGE, 0, NULL, NULL));
    assert_int_equal(cu->cuModuleGetFunction(&function, module, "none"), CUDA_ERROR_NOT_FOUND);
    fine(cu->cuModuleGetFunction(&function, module, "add"));
    memcpy(words, host, sizeof words);
    fine(cu->cuMemcpyHtoD(device, host, sizeof words));
    struct cuda_software_add add = {other, device, 100, 5};
    void *parameters[] = {&add};
    cu->hold(1);
    fine(cu->cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, one, parameters, NULL));
    memset(&add, 0, sizeof add); /* the arguments were copied during the call */
    cu->hold(0);
    read_back((uint8_t *)back, other, sizeof back, one);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(back[i], words[i] + 5);
    assert_int_equal(cu->cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, one, parameters, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu->cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, one, parameters, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    fine(cu->cuModuleUnload(module));
    software_driver_is_content();
}

static void a_capture_refuses_what_it_forbids(void **unused)
{
    (void)unused;
    CUgraph graph;
    CUevent event = new_event(), outside = new_event();
    int status = -1, mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    fine(cu->cuMemcpyHtoDAsync(device, host, 100, two));
    fine(cu->cuEventRecord(outside, two));
    assert_int_equal(cu->cuStreamBeginCapture(NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    fine(cu->cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    fine(cu->cuStreamIsCapturing(one, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    fine(cu->cuMemsetD8Async(device, 0, 100, one)); /* becomes part of the graph and does not run */
    fine(cu->cuEventRecord(event, one));
    fine(cu->cuThreadExchangeStreamCaptureMode(&mode));
    fine(cu->cuEventSynchronize(outside));
    assert_int_equal(cu->cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
    fine(cu->cuStreamEndCapture(one, &graph));
    assert_int_equal(cu->cuStreamWaitEvent(two, event, 0), CUDA_ERROR_CAPTURED_EVENT);
    software_driver_complains("becomes part of the capture");
    fine(cu->cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(cu->cuStreamWaitEvent(one, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    assert_int_equal(cu->cuStreamEndCapture(one, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    fine(cu->cuThreadExchangeStreamCaptureMode(&mode));
    fine(cu->cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(cu->cuEventSynchronize(outside), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(cu->cuStreamEndCapture(one, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    fine(cu->cuStreamIsCapturing(one, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    uint8_t back[100];
    read_back(back, device, sizeof back, two);
    assert_memory_equal(back, host, sizeof back);
    fine(cu->cuEventDestroy(event));
    fine(cu->cuEventDestroy(outside));
    software_driver_is_content();
}

static int capture_status(CUstream stream)
{
    int status = -1;
    fine(cu->cuStreamIsCapturing(stream, &status));
    return status;
}

static void the_legacy_stream_is_unusable_while_a_blocking_one_captures(void **unused)
{
    (void)unused;
    CUstream blocking, legacy[] = {NULL, CU_STREAM_LEGACY};
    CUevent event = new_event();
    CUgraph graph;
    int status, mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    fine(cu->cuThreadExchangeStreamCaptureMode(&mode));
    fine(cu->cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    for (unsigned i = 0; i < 14; i++) {
        CUstream asked = legacy[i % 2];
        fine(cu->cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
        assert_int_equal(cu->cuStreamIsCapturing(asked, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        assert_int_equal(capture_status(blocking), CU_STREAM_CAPTURE_STATUS_ACTIVE); /* asking does no harm */
        CUresult result = i / 2 == 0   ? cu->cuMemsetD8Async(device, 0, 100, asked)
                          : i / 2 == 1 ? cu->cuEventRecord(event, asked)
                          : i / 2 == 2 ? cu->cuStreamWaitEvent(asked, event, 0)
                          : i / 2 == 3 ? cu->cuStreamQuery(asked)
                          : i / 2 == 4 ? cu->cuStreamSynchronize(asked)
                          : i / 2 == 5 ? cu->cuMemcpyHtoD(device, host, 100)
                                       : cu->cuMemcpyHtoDAsync(device, host, 100, asked);
        assert_int_equal(result, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        assert_int_equal(cu->cuStreamEndCapture(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        assert_int_equal(capture_status(asked), CU_STREAM_CAPTURE_STATUS_NONE);
    }
    /* A stream that does not wait for the legacy stream does not disturb it. */
    fine(cu->cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_RELAXED));
    fine(cu->cuMemsetD8Async(device, 0, 100, NULL));
    fine(cu->cuStreamSynchronize(NULL));
    fine(cu->cuStreamEndCapture(one, &graph));
    fine(cu->cuThreadExchangeStreamCaptureMode(&mode));
    fine(cu->cuStreamDestroy(blocking));
    fine(cu->cuEventDestroy(event));
    software_driver_is_content();
}

static void several_captures_do_not_mix(void **unused)
{
    (void)unused;
    CUevent event = new_event();
    CUgraph graph;
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    fine(cu->cuThreadExchangeStreamCaptureMode(&mode));
    fine(cu->cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_RELAXED));
    fine(cu->cuStreamBeginCapture(two, CU_STREAM_CAPTURE_MODE_RELAXED));
    /* What is captured cannot be waited for or asked about, in any mode. */
    assert_int_equal(cu->cuStreamQuery(one), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(capture_status(one), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    assert_int_equal(capture_status(two), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_int_equal(cu->cuStreamEndCapture(one, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    fine(cu->cuStreamEndCapture(two, &graph));
    fine(cu->cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_RELAXED));
    fine(cu->cuStreamBeginCapture(two, CU_STREAM_CAPTURE_MODE_RELAXED));
    fine(cu->cuEventRecord(event, one));
    assert_int_equal(cu->cuStreamWaitEvent(two, event, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    assert_int_equal(cu->cuStreamEndCapture(one, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_int_equal(cu->cuStreamEndCapture(two, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    fine(cu->cuStreamBeginCapture(two, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_int_equal(cu->cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(cu->cuStreamEndCapture(two, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    fine(cu->cuThreadExchangeStreamCaptureMode(&mode));
    fine(cu->cuEventDestroy(event));
    software_driver_is_content();
}

/* Enqueues on the thread's own stream while that of the main thread is held. */
static void *on_another_thread(void *done)
{
    fine(cu->cuCtxPushCurrent(context));
    fine(cu->cuMemsetD8Async(other, 3, BYTES, CU_STREAM_PER_THREAD));
    fine(cu->cuStreamSynchronize(CU_STREAM_PER_THREAD));
    *(bool *)done = true;
    fine(cu->cuCtxPopCurrent(NULL));
    return NULL;
}

static void each_thread_has_its_own_stream(void **unused)
{
    (void)unused;
    bool done = false;
    pthread_t thread;
    fine(cu->cuMemsetD8Async(device, 3, BYTES, CU_STREAM_PER_THREAD));
    cu->hold_stream(CU_STREAM_PER_THREAD, 1);
    fine(cu->cuMemsetD8Async(device, 3, BYTES, CU_STREAM_PER_THREAD));
    assert_int_equal(pthread_create(&thread, NULL, on_another_thread, &done), 0);
    assert_int_equal(pthread_join(thread, NULL), 0); /* with one stream for both it would never end */
    assert_true(done);
    assert_int_equal(cu->cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
    cu->hold_stream(CU_STREAM_PER_THREAD, 0);
    fine(cu->cuStreamSynchronize(CU_STREAM_PER_THREAD));
    software_driver_is_content();
}

static void a_green_stream_has_two_contexts(void **unused)
{
    (void)unused;
    CUdevResource resource;
    CUdevResourceDesc description;
    CUgreenCtx green, found_green;
    CUcontext as_context, found;
    CUstream stream;
    uint8_t back[100];
    fine(cu->cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
    fine(cu->cuDevResourceGenerateDesc(&description, &resource, 1));
    fine(cu->cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    assert_int_equal(cu->cuGreenCtxStreamCreate(&stream, green, 0, 0), CUDA_ERROR_INVALID_VALUE);
    fine(cu->cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    fine(cu->cuCtxFromGreenCtx(&as_context, green));
    assert_ptr_not_equal(as_context, context);
    fine(cu->cuStreamGetCtx(stream, &found));
    assert_ptr_equal(found, as_context);
    fine(cu->cuStreamGetCtx_v2(stream, &found, &found_green));
    assert_ptr_equal(found, context);
    assert_ptr_equal(found_green, green);
    fine(cu->cuStreamGetCtx_v2(one, &found, &found_green));
    assert_ptr_equal(found, context);
    assert_null(found_green);
    /* Memory is that of the primary context, and so are the default streams while the green context is current. */
    fine(cu->cuMemsetD8Async(device, 9, 100, stream));
    read_back(back, device, 100, stream);
    assert_int_equal(back[99], 9);
    fine(cu->cuCtxPushCurrent(as_context));
    fine(cu->cuStreamGetCtx(NULL, &found));
    assert_ptr_equal(found, as_context);
    assert_int_equal(cu->cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_INVALID_HANDLE);
    fine(cu->cuCtxPopCurrent(&found));
    assert_ptr_equal(found, as_context);
    fine(cu->cuStreamDestroy(stream));
    fine(cu->cuGreenCtxDestroy(green));
    assert_int_equal(cu->cuCtxPushCurrent(as_context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    software_driver_is_content();
}

/* Launches "add" over 16 words. */
static void launch_add(CUfunction function)
{
    struct cuda_software_add add = {device, other, 16, 1};
    void *parameters[] = {&add};
    fine(cu->cuMemsetD8Async(other, 0, 64, one));
    fine(cu->cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, one, parameters, NULL));
    fine(cu->cuStreamSynchronize(one));
}

static void a_kernel_is_loaded_at_its_first_launch(void **unused)
{
    (void)unused;
    static const struct {
        const char *words, *loading;
        bool ask; /* by cuFuncLoad */
        uint64_t late;
    } cases[] = {{"quiet", NULL, false, 1},
                 {"quiet", NULL, true, 0},
                 {"quiet", "EAGER", false, 0},
                 {"quiet,version=11040", NULL, false, 0},
                 {"quiet,version=11080", "LAZY", false, 1}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        CUmodule module;
        CUfunction function;
        (void)cu->configure(cases[i].words);
        assert_int_equal(
            cases[i].loading ? setenv("CUDA_MODULE_LOADING", cases[i].loading, 1) : unsetenv("CUDA_MODULE_LOADING"), 0);
        cu->reset();
        fine(cu->cuModuleLoadData(&module, CUDA_SOFTWARE_IMAGE));
        fine(cu->cuModuleGetFunction(&function, module, "add"));
        if (cases[i].ask)
            fine(cu->cuFuncLoad(function));
        launch_add(function);
        launch_add(function);
        assert_int_equal(cu->count("functions_loaded"), 1);
        assert_int_equal(cu->count("late_loads"), cases[i].late);
        assert_int_equal(cu->count("modules_compiled"), 1);
        fine(cu->cuModuleUnload(module));
    }
    assert_int_equal(unsetenv("CUDA_MODULE_LOADING"), 0);
    software_driver_is_content();
}

/* A reset destroys everything, and the handle of the context becomes valid again with the next retain: only the
 * number of the context says that it is another. */
static void a_reset_leaves_dangling_handles(void **unused)
{
    (void)unused;
    CUcontext again;
    CUevent event = new_event();
    unsigned long long before = 0, after = 0;
    fine(cu->cuCtxGetId(context, &before));
    fine(cu->cuDevicePrimaryCtxReset(0));
    /* A thread that has asked and did not know yet is not at fault. */
    assert_int_equal(cu->cuEventQuery(event), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(cu->cuStreamSynchronize(one), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    software_driver_is_content();
    assert_int_equal(cu->cuCtxGetId(context, &after), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(cu->cuCtxPushCurrent(context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(cu->cuMemAlloc(&device, BYTES), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    software_driver_is_content();
    assert_int_equal(cu->cuEventQuery(event), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    software_driver_complains("cuEventQuery uses an event of a context that was reset");
    fine(cu->cuDevicePrimaryCtxRetain(&again, 0));
    assert_ptr_equal(again, context);
    fine(cu->cuCtxGetId(context, &after));
    assert_true(after != before);
    assert_int_equal(cu->cuStreamSynchronize(one), CUDA_ERROR_INVALID_HANDLE);
    software_driver_complains("cuStreamSynchronize uses a stream of a context that was reset");
    assert_int_equal(cu->cuMemFree(other), CUDA_ERROR_INVALID_VALUE);
    software_driver_complains("is not an allocation any more");
    fine(cu->cuDevicePrimaryCtxRelease(0));
    /* for the teardown */
    fine(cu->cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    fine(cu->cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
    fine(cu->cuMemAlloc(&device, BYTES));
    fine(cu->cuMemAlloc(&other, BYTES));
    fine(cu->cuMemHostRegister(host, BYTES, 0));
}

/* The kernel reads the rows of a slot 8 bytes at a time, so a GPU faults if the slot begins at an odd multiple of 4. */
static void a_misaligned_access_is_a_fault(void **unused)
{
    (void)unused;
    if (!strcmp(getenv("SANITIZE") ? getenv("SANITIZE") : "", "")) {
        CUmodule module;
        CUfunction function;
        struct expand_arguments work = {
            .inputs = other, .row_stride = 192, .count = 2, .seq_len = 64, .row_tokens = 64, .width = 2, .element = 4};
        void *parameters[] = {&work};
        fine(cu->cuModuleLoadData(&module, expand_ptx));
        fine(cu->cuModuleGetFunction(&function, module, "tokmap_expand"));
        for (unsigned shift = 0; shift < 8; shift += 4) {
            fine(cu->cuMemcpyHtoDAsync(device, host, 1000, one));
            work.slot = device + shift;
            fine(cu->cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, one, parameters, NULL));
            assert_int_equal(cu->cuStreamSynchronize(one), shift ? CUDA_ERROR_MISALIGNED_ADDRESS : CUDA_SUCCESS);
        }
        software_driver_complains("tokmap_expand accesses memory at an address that is not a multiple");
        /* Every call fails from now on; a reset ends that. */
        assert_int_equal(cu->cuStreamQuery(two), CUDA_ERROR_MISALIGNED_ADDRESS);
        CUcontext again;
        fine(cu->cuDevicePrimaryCtxReset(0));
        fine(cu->cuDevicePrimaryCtxRetain(&again, 0));
        fine(cu->cuDevicePrimaryCtxRelease(0));
        fine(cu->cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
        fine(cu->cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
        fine(cu->cuMemAlloc(&device, BYTES));
        fine(cu->cuMemAlloc(&other, BYTES));
        fine(cu->cuMemHostRegister(host, BYTES, 0));
    }
}

static void attributes_can_be_set(void **unused)
{
    (void)unused;
    CUmodule module;
    CUfunction function;
    int value = -1, blocks = 0;
    fine(cu->cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0));
    assert_int_equal(value, 0);
    (void)cu->configure("quiet,pageable");
    fine(cu->cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0));
    assert_int_equal(value, 1);
    fine(cu->cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 0));
    assert_int_equal(value, 0);
    fine(cu->cuModuleLoadData(&module, CUDA_SOFTWARE_IMAGE));
    fine(cu->cuModuleGetFunction(&function, module, "add"));
    static const int expected[][3] = {{48, 256, 5}, {40, 256, 6}, {32, 256, 8}, {64, 256, 4}, {32, 32, 32}};
    for (unsigned i = 0; i < 5; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "quiet,registers=%d", expected[i][0]);
        (void)cu->configure(text);
        fine(cu->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, expected[i][1], 0));
        assert_int_equal(blocks, expected[i][2]);
    }
    fine(cu->cuModuleUnload(module));
}

/* To wait for the whole context conflicts with a capture in it, whatever the modes are. */
static void a_context_cannot_be_waited_for_during_a_capture(void **unused)
{
    (void)unused;
    CUgraph graph;
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    fine(cu->cuThreadExchangeStreamCaptureMode(&mode));
    for (int i = CU_STREAM_CAPTURE_MODE_GLOBAL; i <= CU_STREAM_CAPTURE_MODE_RELAXED; i++) {
        CUdeviceptr memory;
        fine(cu->cuMemAlloc(&memory, 1));
        fine(cu->cuStreamBeginCapture(one, i));
        fine(cu->cuMemFree(memory)); /* waits, too, but conflicts with nothing */
        fine(cu->cuStreamEndCapture(one, &graph));
        fine(cu->cuStreamBeginCapture(one, i));
        assert_int_equal(cu->cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        assert_int_equal(cu->cuStreamEndCapture(one, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    fine(cu->cuThreadExchangeStreamCaptureMode(&mode));
    software_driver_is_content();
}

/* A free waits for all streams of the context, so what is enqueued later comes after everything. */
static void a_free_waits_for_all_streams(void **unused)
{
    (void)unused;
    CUdeviceptr memory;
    fine(cu->cuMemAlloc(&memory, 1));
    (void)cu->configure("quiet,delay=2000,seed=3");
    fine(cu->cuMemsetD8Async(device, 1, BYTES, one));
    fine(cu->cuMemsetD8Async(other, 2, BYTES, two));
    fine(cu->cuMemFree(memory));
    fine(cu->cuStreamQuery(one));
    fine(cu->cuStreamQuery(two));
    fine(cu->cuMemcpyDtoDAsync(device, other, BYTES, one));
    fine(cu->cuStreamSynchronize(one));
    cu->hold_stream(two, 1); /* which never ends, so the free does not wait */
    fine(cu->cuMemAlloc(&memory, 1));
    fine(cu->cuMemsetD8Async(other, 3, BYTES, two));
    fine(cu->cuMemFree(memory));
    cu->hold_stream(two, 0);
    fine(cu->cuStreamSynchronize(two));
}

static void contexts_and_pointers_are_distinguished(void **unused)
{
    (void)unused;
    CUcontext second, found;
    CUstream foreign;
    CUdevice number;
    CUevent event = new_event();
    (void)cu->configure("quiet,devices=2");
    fine(cu->cuDevicePrimaryCtxRetain(&second, 1));
    fine(cu->cuCtxPushCurrent(second));
    fine(cu->cuStreamCreate(&foreign, CU_STREAM_NON_BLOCKING));
    fine(cu->cuCtxGetDevice(&number));
    assert_int_equal(number, 1);
    assert_int_equal(cu->cuMemsetD8Async(device, 1, 10, one), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cu->cuEventRecord(event, foreign), CUDA_ERROR_INVALID_HANDLE);
    fine(cu->cuStreamWaitEvent(foreign, event, 0));
    fine(cu->cuStreamGetCtx(one, &found));
    assert_ptr_equal(found, context);
    fine(cu->cuStreamDestroy(foreign));
    fine(cu->cuCtxPopCurrent(&found));
    assert_ptr_equal(found, second);
    fine(cu->cuDevicePrimaryCtxRelease(1));
    unsigned kind = 0;
    int ordinal = -1;
    fine(cu->cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 100));
    assert_int_equal(kind, CU_MEMORYTYPE_DEVICE);
    fine(cu->cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, device));
    assert_int_equal(ordinal, 0);
    fine(cu->cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)host));
    assert_int_equal(kind, CU_MEMORYTYPE_HOST);
    assert_int_equal(cu->cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&kind),
                     CUDA_ERROR_INVALID_VALUE);
    fine(cu->cuCtxPopCurrent(NULL));
    assert_int_equal(cu->cuStreamQuery(NULL), CUDA_ERROR_INVALID_CONTEXT);
    fine(cu->cuCtxPushCurrent(context));
    fine(cu->cuEventDestroy(event));
    software_driver_is_content();
}

/* What a real driver makes slow is counted, by name. */
static void costs_are_counted(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        uint64_t count;
    } expected[] = {{"contexts_made", 0},   {"streams_created", 1}, {"events_created", 2},
                    {"blocking_events", 1}, {"device_frees", 1},    {"device_allocations_made", 1},
                    {"cuEventCreate", 2},   {"cuMemFree", 2},       {"host_registrations_made", 1},
                    {"synchronizations", 2}};
    CUcontext again;
    CUstream stream;
    CUevent events[2];
    CUdeviceptr memory;
    char more[64];
    fine(cu->cuDevicePrimaryCtxRetain(&again, 0)); /* it exists already */
    fine(cu->cuStreamCreate(&stream, 0));
    fine(cu->cuEventCreate(&events[0], CU_EVENT_DISABLE_TIMING));
    fine(cu->cuEventCreate(&events[1], CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC));
    fine(cu->cuMemAlloc(&memory, 100));
    fine(cu->cuMemHostRegister(more, sizeof more, 0));
    fine(cu->cuEventSynchronize(events[0]));
    fine(cu->cuMemFree(memory));
    fine(cu->cuMemFree(0)); /* frees nothing */
    for (unsigned i = 0; i < sizeof expected / sizeof *expected; i++)
        if (cu->count(expected[i].name) != expected[i].count)
            fail_msg("%s is %llu", expected[i].name, (unsigned long long)cu->count(expected[i].name));
    assert_int_equal(cu->count("calls"), 9);
    assert_true(cu->count("cuNoSuchFunction") == UINT64_MAX);
    fine(cu->cuMemHostUnregister(more));
    fine(cu->cuStreamDestroy(stream));
    fine(cu->cuEventDestroy(events[0]));
    fine(cu->cuEventDestroy(events[1]));
    fine(cu->cuDevicePrimaryCtxRelease(0));
    cu->reset();
    assert_int_equal(cu->count("calls"), 0);
    assert_int_equal(cu->count("events_created"), 0);
}

static bool finds(const char *name, int version, int expected_status)
{
    void *entry;
    int status = -1;
    fine(cu->cuGetProcAddress_v2(name, &entry, version, 1, &status));
    assert_int_equal(status, expected_status);
    return entry != NULL;
}

/* A function that is newer than the version that is asked for is not found, and nobody may ask for a version that is
 * newer than the driver. */
static void entry_points_have_versions(void **unused)
{
    (void)unused;
    static const int versions[] = {11030, 12000, 12040, 12050, 13000};
    void *first = NULL, *second = NULL;
    CUresult (*ask)(CUdevice *) = NULL;
    CUdevice number;
    for (unsigned driver = 0; driver < 5; driver++) {
        char text[64];
        (void)snprintf(text, sizeof text, "quiet,version=%d", versions[driver]);
        (void)cu->configure(text);
        for (unsigned asked = 0; asked <= driver; asked++) {
            assert_int_equal(finds("cuFuncLoad", versions[asked], asked >= 2 ? 0 : 2), asked >= 2);
            assert_int_equal(finds("cuCtxGetId", versions[asked], asked >= 1 ? 0 : 2), asked >= 1);
            assert_int_equal(finds("cuGreenCtxStreamCreate", versions[asked], asked >= 3 ? 0 : 2), asked >= 3);
            assert_true(finds("cuLaunchKernel", versions[asked], 0));
        }
        if (driver < 4)
            assert_int_equal(cu->cuGetProcAddress_v2("cuInit", &first, versions[driver + 1], 1, NULL),
                             CUDA_ERROR_INVALID_VALUE);
    }
    fine(cu->cuGetProcAddress_v2("cuStreamGetCtx", &first, 12040, 1, NULL));
    fine(cu->cuGetProcAddress_v2("cuStreamGetCtx", &second, 12050, 1, NULL));
    assert_memory_equal(&first, &cu->cuStreamGetCtx, sizeof first);
    assert_memory_equal(&second, &cu->cuStreamGetCtx_v2, sizeof second);
    software_driver_is_content();
    fine(cu->cuGetProcAddress_v2("cuCtxGetDevice", &first, 13000, 1, NULL)); /* it has a second argument there */
    memcpy(&ask, &first, sizeof ask);
    assert_int_equal(ask(&number), CUDA_ERROR_INVALID_VALUE);
    software_driver_complains("other arguments");
    fine(cu->cuGetProcAddress_v2("cuStreamQuery", &first, 12000, 2, NULL));
    software_driver_complains("the thread's own");
}

static void entry_points_are_found_by_their_plain_names(void **unused)
{
    (void)unused;
    void *entry = NULL, *expected;
    int found = -1;
    memcpy(&expected, &cu->cuMemAlloc, sizeof expected);
    fine(cu->cuGetProcAddress("cuMemAlloc", &entry, 11030, 0));
    assert_ptr_equal(entry, expected);
    fine(cu->cuGetProcAddress_v2("cuMemAlloc_v2", &entry, 12000, 0, &found));
    assert_int_equal(found, 1);
    assert_null(entry);
    (void)cu->configure("quiet,missing=cuStreamQuery");
    assert_int_equal(cu->cuGetProcAddress("cuStreamQuery", &entry, 12000, 0), CUDA_ERROR_NOT_FOUND);
    const char *name;
    fine(cu->cuGetErrorName(700, &name));
    assert_string_equal(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_int_equal(cu->cuGetErrorName(12345, &name), CUDA_ERROR_INVALID_VALUE);
}

/* A random program over a few buffers and streams. If each operation waits for those that it conflicts with, the result
 * is that of the calls in their order, whatever the delays are.
 *   omit   leaves out the wait with this number, from 1; the driver must find that, whatever the delays are. 0: none */
static void any_program(unsigned seed, unsigned omit, uint64_t *waits)
{
    enum { BUFFERS = 6, STREAMS = 4, STEPS = 60, SIZE = 400 };
    CUdeviceptr buffers[BUFFERS];
    CUstream streams[STREAMS];
    CUevent last[BUFFERS];
    int owner[BUFFERS]; /* the stream that last used the buffer; -1: none */
    uint8_t expected[BUFFERS][SIZE], back[SIZE];
    uint64_t state = seed, wait = 0;
    char text[64];
    (void)snprintf(text, sizeof text, "quiet,delay=%u,seed=%u", seed % 3 * 60, seed);
    (void)cu->configure(text);
    for (unsigned i = 0; i < STREAMS; i++)
        fine(cu->cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < BUFFERS; i++) {
        fine(cu->cuMemAlloc(&buffers[i], SIZE));
        fine(cu->cuMemcpyHtoD(buffers[i], host + i * SIZE, SIZE));
        memcpy(expected[i], host + i * SIZE, SIZE);
        last[i] = new_event();
        owner[i] = -1;
    }
    for (unsigned step = 0; step < STEPS; step++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        unsigned from = (unsigned)(state >> 33) % BUFFERS, into = (unsigned)(state >> 43) % BUFFERS;
        int on = (int)((state >> 53) % STREAMS);
        for (unsigned i = 0; i < 2; i++) {
            unsigned buffer = i ? into : from;
            if (owner[buffer] >= 0 && owner[buffer] != on && ++wait != omit)
                fine(cu->cuStreamWaitEvent(streams[on], last[buffer], 0));
        }
        if (from == into)
            fine(cu->cuMemsetD8Async(buffers[into], (unsigned char)step, SIZE, streams[on]));
        else
            fine(cu->cuMemcpyDtoDAsync(buffers[into], buffers[from], SIZE, streams[on]));
        if (from == into)
            memset(expected[into], (int)step, SIZE);
        else
            memcpy(expected[into], expected[from], SIZE);
        for (unsigned i = 0; i < 2; i++)
            fine(cu->cuEventRecord(last[i ? into : from], streams[on]));
        owner[from] = owner[into] = on;
    }
    fine(cu->cuCtxSynchronize());
    for (unsigned i = 0; i < BUFFERS; i++) {
        read_back(back, buffers[i], SIZE, one);
        if (!omit)
            assert_memory_equal(back, expected[i], SIZE);
        fine(cu->cuMemFree(buffers[i]));
        fine(cu->cuEventDestroy(last[i]));
    }
    for (unsigned i = 0; i < STREAMS; i++)
        fine(cu->cuStreamDestroy(streams[i]));
    *waits = wait;
}

static void order_is_kept_and_missing_order_is_found(void **unused)
{
    (void)unused;
    unsigned found = 0, omitted = 0;
    for (unsigned seed = 0; seed < 12; seed++) {
        uint64_t waits, again;
        struct cuda_software_counts counts;
        any_program(seed, 0, &waits);
        software_driver_is_content();
#ifdef THREAD_SANITIZER
        waits = 0; /* the omissions are data races, which the sanitizer would report */
#endif
        for (unsigned omit = 1; omit <= waits; omit += 9) {
            any_program(seed, omit, &again);
            cu->counts(&counts);
            omitted++;
            found += counts.violations != 0;
            cu->reset();
        }
    }
    /* Some omitted waits are implied by others and cause no violation. */
#ifdef THREAD_SANITIZER
    assert_int_equal(omitted, 0);
    assert_int_equal(found, 0);
#else
    assert_true(omitted > 30);
    assert_true(found > omitted / 3);
#endif
}

/* ---- the faults that it finds ---- */

static void unordered_accesses_are_found(void **unused)
{
    (void)unused;
#ifdef THREAD_SANITIZER
    skip(); /* these are data races, which the sanitizer would report */
#endif
    CUevent event = new_event();
    fine(cu->cuMemcpyHtoDAsync(device, host, BYTES, one));
    fine(cu->cuMemcpyDtoDAsync(other, device + 100, 50, two));
    software_driver_complains("in no order");
    fine(cu->cuCtxSynchronize());

    fine(cu->cuMemcpyHtoDAsync(device, host, BYTES, one)); /* the host has waited for everything before */
    fine(cu->cuEventRecord(event, one));
    fine(cu->cuStreamWaitEvent(two, event, 0));
    fine(cu->cuMemcpyDtoDAsync(other, device + 100, 50, two));
    software_driver_is_content();
    fine(cu->cuMemsetD8Async(device + 149, 0, 1, one)); /* a write to bytes that are being read */
    software_driver_complains("in no order");
    fine(cu->cuCtxSynchronize());
    fine(cu->cuMemsetD8Async(device, 0, 100, one)); /* ranges that do not overlap are not in conflict */
    fine(cu->cuMemsetD8Async(device + 100, 0, 100, two));
    fine(cu->cuEventRecord(event, two)); /* stream one waits for stream two, but not the reverse */
    fine(cu->cuStreamWaitEvent(one, event, 0));
    fine(cu->cuMemsetD8Async(device + 100, 0, 100, one));
    software_driver_is_content();
    fine(cu->cuMemsetD8Async(device + 100, 0, 100, two));
    software_driver_complains("in no order");
    fine(cu->cuEventDestroy(event));
}

static void a_source_that_changes_is_found(void **unused)
{
    (void)unused;
#ifdef THREAD_SANITIZER
    skip(); /* the sanitizer would report the change */
#endif
    cu->hold(1);
    fine(cu->cuMemcpyHtoDAsync(device, host, BYTES, one));
    host[BYTES - 3] ^= 1;
    cu->hold(0);
    fine(cu->cuStreamSynchronize(one));
    software_driver_complains("has changed");
    uint8_t back[BYTES];
    read_back(back, device, BYTES, one);
    assert_memory_equal(back, host, BYTES); /* the copy ran when the stream reached it */

    uint8_t pageable[100] = {9}; /* memory that is not pinned is copied by the driver during the call */
    struct cuda_software_counts counts;
    cu->hold(1);
    fine(cu->cuMemcpyHtoDAsync(device, pageable, sizeof pageable, one));
    pageable[0] = 8;
    cu->hold(0);
    read_back(back, device, 1, one);
    assert_int_equal(back[0], 9);
    cu->counts(&counts);
    assert_int_equal(counts.pageable_copies, 3);
    software_driver_is_content();
}

static void invalid_memory_is_found(void **unused)
{
    (void)unused;
    uint8_t back[10];
    CUdeviceptr gone, fresh;
    fine(cu->cuMemAlloc(&gone, 100));
    fine(cu->cuMemFree(gone));
    assert_int_equal(cu->cuMemcpyHtoDAsync(gone, host, 100, one), CUDA_ERROR_INVALID_VALUE);
    software_driver_complains("was freed");
    assert_int_equal(cu->cuMemFree(gone), CUDA_ERROR_INVALID_VALUE);
    software_driver_complains("any more");
    assert_int_equal(cu->cuMemcpyHtoDAsync(device + BYTES - 10, host, 11, one), CUDA_ERROR_INVALID_VALUE);
    software_driver_complains("uses 11 bytes from 19990");
    assert_int_equal(cu->cuMemcpyHtoDAsync(12345, host, 11, one), CUDA_ERROR_INVALID_VALUE);
    software_driver_complains("never allocated");
    assert_int_equal(cu->cuMemcpyHtoDAsync(device, (void *)(uintptr_t)other, 10, one), CUDA_ERROR_INVALID_VALUE);
    software_driver_complains("is device memory");
    fine(cu->cuMemAlloc(&fresh, 1000));
    fine(cu->cuMemsetD8Async(fresh, 0, 500, one));
    fine(cu->cuMemcpyDtoHAsync(back, fresh + 490, 10, one));
    software_driver_is_content();
    fine(cu->cuMemcpyDtoHAsync(back, fresh + 520, 10, one));
    software_driver_complains("which nothing has written");
    cu->hold(1);
    fine(cu->cuMemsetD8Async(fresh, 1, 1000, one));
    fine(cu->cuMemcpyHtoDAsync(device, host, 1000, one));
    fine(cu->cuMemFree(fresh));
    software_driver_complains("still uses");
    fine(cu->cuMemHostUnregister(host));
    software_driver_complains("still uses");
    fine(cu->cuMemHostRegister(host, BYTES, 0));
    assert_int_equal(cu->cuMemHostRegister(host + 10, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    cu->hold(0);
    fine(cu->cuStreamSynchronize(one));
    software_driver_is_content();
}

static void invalid_handles_are_found(void **unused)
{
    (void)unused;
    CUevent event = new_event();
    CUstream stream;
    fine(cu->cuStreamCreate(&stream, 0));
    fine(cu->cuMemsetD8Async(device, 7, BYTES, stream));
    fine(cu->cuEventRecord(event, stream));
    fine(cu->cuStreamDestroy(stream)); /* enqueued work still runs */
    fine(cu->cuEventSynchronize(event));
    uint8_t back[BYTES];
    read_back(back, device, BYTES, one);
    assert_int_equal(back[BYTES - 1], 7);
    software_driver_is_content();
    assert_int_equal(cu->cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
    software_driver_complains("stream that was destroyed");
    fine(cu->cuEventDestroy(event));
    assert_int_equal(cu->cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
    software_driver_complains("event that was destroyed");
    assert_int_equal(cu->cuStreamSynchronize((CUstream)(uintptr_t)back), CUDA_ERROR_INVALID_HANDLE);
    software_driver_complains("is not a stream");
    /* The handle of a context that has ended is not that of the next. */
    CUcontext ended = context;
    assert_int_equal(cu->cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    software_driver_complains("released with"); /* a stream and memory in it */
    assert_int_equal(cu->cuStreamQuery(NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    fine(cu->cuDevicePrimaryCtxRetain(&context, 0));
    assert_ptr_not_equal(context, ended);
    assert_int_equal(cu->cuStreamQuery(NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(cu->cuCtxPushCurrent(ended), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    fine(cu->cuCtxPopCurrent(NULL));
    fine(cu->cuCtxPushCurrent(context));
    fine(cu->cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    fine(cu->cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
}

/* ---- injected faults ---- */

static void injected_faults_happen(void **unused)
{
    (void)unused;
    CUdeviceptr memory;
    (void)cu->configure("quiet,fail=cuMemAlloc:2:2,fail=cuEventCreate:1+");
    fine(cu->cuMemAlloc(&memory, 10));
    fine(cu->cuMemFree(memory));
    assert_int_equal(cu->cuMemAlloc(&memory, 10), CUDA_ERROR_OUT_OF_MEMORY);
    fine(cu->cuMemAlloc(&memory, 10));
    fine(cu->cuMemFree(memory));
    CUevent event;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(cu->cuEventCreate(&event, 0), CUDA_ERROR_UNKNOWN);
    (void)cu->configure("quiet,memory=50000,pinned=20000");
    assert_int_equal(cu->cuMemAlloc(&memory, 20000), CUDA_ERROR_OUT_OF_MEMORY);
    void *pinned;
    assert_int_equal(cu->cuMemHostAlloc(&pinned, 1, 0), CUDA_ERROR_OUT_OF_MEMORY);
    (void)cu->configure("quiet,stub");
    assert_int_equal(cu->cuInit(0), CUDA_ERROR_STUB_LIBRARY);
    (void)cu->configure("quiet,devices=0");
    assert_int_equal(cu->cuInit(0), CUDA_ERROR_NO_DEVICE);
    (void)cu->configure("quiet");
    assert_false(cu->configure("quiet,speed=3"));
    assert_false(cu->configure("fail=cuNothing:1"));

    /* a failure that occurs when the stream reaches the operation, and is permanent */
    (void)cu->configure("quiet,late=cuMemcpyHtoDAsync:2");
    fine(cu->cuMemcpyHtoDAsync(device, host, 10, one));
    cu->hold(1);
    fine(cu->cuMemcpyHtoDAsync(device, host, 10, one));
    fine(cu->cuMemsetD8Async(device, 1, 10, one));
    cu->hold(0);
    assert_int_equal(cu->cuStreamSynchronize(one), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cu->cuMemAlloc(&memory, 10), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cu->cuStreamQuery(two), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cu->cuMemFree(device), CUDA_ERROR_ILLEGAL_ADDRESS); /* frees the memory nevertheless */
    assert_int_equal(cu->cuMemFree(other), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cu->cuStreamDestroy(one), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cu->cuStreamDestroy(two), CUDA_ERROR_ILLEGAL_ADDRESS);
    fine(cu->cuDevicePrimaryCtxRelease(0)); /* the last release repairs the device */
    fine(cu->cuDevicePrimaryCtxRetain(&context, 0));
    fine(cu->cuCtxPopCurrent(NULL));
    fine(cu->cuCtxPushCurrent(context));
    fine(cu->cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    fine(cu->cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
    fine(cu->cuMemAlloc(&device, BYTES));
    fine(cu->cuMemAlloc(&other, BYTES));
    software_driver_is_content();
}

static void a_child_cannot_use_it(void **unused)
{
    (void)unused;
    pid_t child = fork();
    if (!child)
        _exit(cu->cuInit(0) != CUDA_ERROR_NOT_INITIALIZED || cu->cuStreamQuery(one) != CUDA_ERROR_NOT_INITIALIZED);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- the end of the program ---- */

static int child_main(const char *what)
{
    CUevent event;
    cu = software_driver();
    if (cu->cuInit(0) || cu->cuDevicePrimaryCtxRetain(&context, 0) || cu->cuCtxPushCurrent(context) ||
        cu->cuEventCreate(&event, 0))
        return 3;
    if (strcmp(what, "leak") && (cu->cuEventDestroy(event) || cu->cuDevicePrimaryCtxRelease(0)))
        return 4;
    if (!strcmp(what, "violation"))
        (void)cu->cuEventQuery(event);
    return 0;
}

static int status_of(const char *what, const char *environment)
{
    struct os_child child;
    char path[900];
    int status;
    const char *const arguments[] = {"test_device_software", what, NULL};
    assert_int_equal(os_program_path(path, sizeof path), 0);
    assert_int_equal(setenv("TOKMAP_CUDA_SOFTWARE", environment, 1), 0);
    assert_int_equal(os_child_start(&child, path, arguments, false), 0);
    assert_int_equal(os_child_wait(&child, &status), 0);
    return status;
}

static void leaks_and_violations_change_the_exit_status(void **unused)
{
    (void)unused;
    assert_int_equal(status_of("nothing", ""), 0);
    assert_int_equal(status_of("leak", "delay=3"), 97);
    assert_int_equal(status_of("violation", "seed=1"), 97);
    assert_int_equal(status_of("leak", "lenient"), 0);
    assert_int_equal(status_of("violation", "quiet"), 0);
    /* a report of the counts */
    char folder[512], path[600], word[700], text[4000];
    scratch_make(folder);
    (void)snprintf(path, sizeof path, "%s/report", folder);
    (void)snprintf(word, sizeof word, "quiet,report=%s", path);
    assert_int_equal(status_of("leak", word), 0);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    assert_non_null(strstr(text, "contexts_made 1\n"));
    assert_non_null(strstr(text, "\ncuEventCreate 1\n"));
    assert_null(strstr(text, "cuMemFree"));
    scratch_remove(folder);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return child_main(argv[1]);
    cu = software_driver();
    (void)cu->configure("quiet");
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_copy_is_late_and_whole),
        TEST(an_event_marks_where_it_was_recorded),
        TEST(the_default_stream_waits_for_blocking_ones),
        TEST(a_lazy_stream_runs_only_what_is_waited_for),
        TEST(a_kernel_runs_when_the_stream_reaches_it),
        TEST(a_capture_refuses_what_it_forbids),
        TEST(a_context_cannot_be_waited_for_during_a_capture),
        TEST(a_free_waits_for_all_streams),
        TEST(contexts_and_pointers_are_distinguished),
        TEST(costs_are_counted),
        TEST(entry_points_are_found_by_their_plain_names),
        TEST(entry_points_have_versions),
        TEST(the_legacy_stream_is_unusable_while_a_blocking_one_captures),
        TEST(several_captures_do_not_mix),
        TEST(each_thread_has_its_own_stream),
        TEST(a_green_stream_has_two_contexts),
        TEST(a_kernel_is_loaded_at_its_first_launch),
        TEST(a_reset_leaves_dangling_handles),
        TEST(a_misaligned_access_is_a_fault),
        TEST(attributes_can_be_set),
        TEST(order_is_kept_and_missing_order_is_found),
        TEST(unordered_accesses_are_found),
        TEST(a_source_that_changes_is_found),
        TEST(invalid_memory_is_found),
        TEST(invalid_handles_are_found),
        TEST(injected_faults_happen),
        TEST(a_child_cannot_use_it),
        cmocka_unit_test(leaks_and_violations_change_the_exit_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
