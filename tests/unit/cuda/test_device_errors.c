/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * Failures of loaders on a GPU, with the emulated driver. Each call of the driver fails once, while a loader is opened
 * and while batches flow. The loader must return a status with the result and its name, deliver the same rows in the
 * next call, and leave nothing behind. Also: invalid device names, a missing driver, too little memory, and callers
 * that pass a wrong stream or wrong memory.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/made.h"
#include "support/run_help.h"
#include "support/scratch.h"
#include "support/software_driver.h"
#include "tokmap/cuda.h"

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER
#endif
#endif

#define SEQ_LEN 100
#define BATCH 4
#define PASSES 1
#define ALL_FIELDS                                                                                                     \
    (TOKMAP_INPUTS | TOKMAP_TARGETS | TOKMAP_POSITION_IDS | TOKMAP_ROWS | TOKMAP_DOCUMENT_IDS | TOKMAP_LOSS_MASK |     \
     TOKMAP_CU_SEQLENS)

static char folder[512];
static struct made made;
static struct tokmap_run *run;
static const struct software_driver *driver;

static int setup(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {2500, 1700};
    struct simple_run options = SIMPLE_RUN_INIT;
    driver = software_driver();
    setenv("TOKMAP_CUDA_DRIVER", driver->path, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    scratch_make(folder);
    made_new(&made, folder, "data", 2, 50257, sizes, 2);
    options.data = made.name;
    options.seq_len = SEQ_LEN;
    options.lookahead = 1;
    options.batch = BATCH;
    options.seed = 3;
    options.passes = PASSES;
    return simple_run_open(&run, &options, NULL) ? -1 : 0;
}

static int teardown(void **unused)
{
    (void)unused;
    tokmap_run_close(run);
    made_free(&made);
    scratch_remove(folder);
    return 0;
}

static void configure(const char *words)
{
    assert_true(driver->configure(words));
}

/* After each test: nothing is left in the driver, and it has found no violation. */
static int finish(void **unused)
{
    (void)unused;
    setenv("TOKMAP_CUDA_DRIVER", driver->path, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    configure("");
    software_driver_is_content();
    software_driver_is_empty();
    return 0;
}

/* ---- a loader under test, with outputs on the device and copies of them on the host ---- */

struct consumer {
    struct tokmap_loader *loader;
    struct tokmap_out out;
    struct CUstream_st *stream;
    const char *device;
    uint64_t rows; /* rows seen so far; the run delivers them in order */
};

static struct tokmap_loader_options device_options(uint32_t threads)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    options.threads = threads;
    options.device = "cuda:0";
    return options;
}

static void *device_memory(const char *device, uint64_t bytes)
{
    void *memory = NULL;
    struct tokmap_error error;
    if (tokmap_cuda_memory_new(device, bytes, &memory, &error))
        fail_msg("%s", error.message);
    return memory;
}

static void outputs_new(struct consumer *consumer, const char *device)
{
    memset(consumer, 0, sizeof *consumer);
    consumer->device = device;
    consumer->out = (struct tokmap_out)TOKMAP_OUT_INIT;
    consumer->out.inputs = device_memory(device, BATCH * SEQ_LEN * 8);
    consumer->out.targets = device_memory(device, BATCH * SEQ_LEN * 8);
    assert_int_equal(tokmap_cuda_stream_new(device, &consumer->stream, NULL), TOKMAP_OK);
}

static void outputs_free(struct consumer *consumer)
{
    tokmap_cuda_memory_free(consumer->device, consumer->out.inputs);
    tokmap_cuda_memory_free(consumer->device, consumer->out.targets);
    tokmap_cuda_stream_free(consumer->device, consumer->stream);
}

/* Checks that the batch is the next one of the run, and that the inputs and targets on the device are its rows. */
static void check_batch(struct consumer *consumer, const struct tokmap_batch *batch)
{
    static int32_t inputs[BATCH * SEQ_LEN], targets[BATCH * SEQ_LEN];
    uint64_t bytes = batch->count * SEQ_LEN * 4;
    assert_int_equal(
        tokmap_cuda_memory_read(consumer->device, inputs, consumer->out.inputs, bytes, consumer->stream, NULL),
        TOKMAP_OK);
    assert_int_equal(
        tokmap_cuda_memory_read(consumer->device, targets, consumer->out.targets, bytes, consumer->stream, NULL),
        TOKMAP_OK);
    for (uint64_t i = 0; i < batch->count; i++, consumer->rows++) {
        uint64_t first = batch->places[i].first_token;
        assert_int_equal(batch->places[i].step * BATCH + batch->places[i].row, consumer->rows);
        for (uint64_t j = 0; j < SEQ_LEN; j++) {
            assert_int_equal(inputs[i * SEQ_LEN + j], made_token(&made, (first + j) % made.tokens));
            assert_int_equal(targets[i * SEQ_LEN + j], made_token(&made, (first + j + 1) % made.tokens));
        }
    }
}

/* Consumes the rest of the run. Returns how many calls failed; each must be an error of the device. */
static unsigned consume(struct consumer *consumer, int device_code)
{
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct tokmap_error error;
    unsigned failures = 0;
    enum tokmap_status status;
    while ((status = tokmap_cuda_next(consumer->loader, &consumer->out, consumer->stream, &batch, &error)) !=
           TOKMAP_END) {
        if (!status) {
            check_batch(consumer, &batch);
            continue;
        }
        failures++;
        if (failures > 10)
            fail_msg("more than 10 calls failed, the last one with: %s", error.message);
        assert_int_equal(status, TOKMAP_ERROR_DEVICE);
        assert_int_equal(error.status, TOKMAP_ERROR_DEVICE);
        assert_int_equal(error.device, device_code);
        assert_non_null(strstr(error.message, "CUDA_ERROR_"));
        assert_int_equal(batch.count, 0);
    }
    return failures;
}

static void refused(const struct tokmap_loader_options *options, enum tokmap_status status, int device_code,
                    const char *words)
{
    struct tokmap_loader *loader = (struct tokmap_loader *)&made;
    struct tokmap_error error = {.status = TOKMAP_OK};
    assert_int_equal(tokmap_loader_open(&loader, run, options, &error), status);
    assert_null(loader);
    assert_int_equal(error.status, status);
    assert_int_equal(error.device, device_code);
    if (!strstr(error.message, words))
        fail_msg("the message \"%s\" does not contain \"%s\"", error.message, words);
}

/* ---- no device ---- */

/* Every function that opens a device reports the same. */
static void no_device(const char *words, int device_code)
{
    struct tokmap_loader_options options = device_options(1);
    struct tokmap_cuda_info info = TOKMAP_CUDA_INFO_INIT;
    struct tokmap_cuda_device_info what = TOKMAP_CUDA_DEVICE_INFO_INIT;
    struct tokmap_error error;
    void *memory = &info;
    struct CUstream_st *stream = (struct CUstream_st *)&info;
    char host[8];
    refused(&options, TOKMAP_ERROR_NO_DEVICE, device_code, words);
    options.device = "cuda";
    refused(&options, TOKMAP_ERROR_NO_DEVICE, device_code, words);
    assert_int_equal(tokmap_cuda_probe(&info, &error), TOKMAP_ERROR_NO_DEVICE);
    assert_non_null(strstr(error.message, words));
    assert_int_equal(tokmap_cuda_device(0, &what, &error), TOKMAP_ERROR_NO_DEVICE);
    assert_int_equal(tokmap_cuda_memory_new("cuda:0", 8, &memory, &error), TOKMAP_ERROR_NO_DEVICE);
    assert_null(memory);
    assert_int_equal(tokmap_cuda_stream_new("cuda:0", &stream, &error), TOKMAP_ERROR_NO_DEVICE);
    assert_null(stream);
    assert_int_equal(tokmap_cuda_memory_read("cuda:0", host, host, 8, NULL, &error), TOKMAP_ERROR_NO_DEVICE);
    assert_int_equal(tokmap_cuda_stream_wait("cuda:0", NULL, NULL, &error), TOKMAP_ERROR_NO_DEVICE);
    assert_int_equal(tokmap_cuda_stream_synchronize("cuda:0", NULL, NULL), TOKMAP_ERROR_NO_DEVICE);
    tokmap_cuda_memory_free("cuda:0", host);
    tokmap_cuda_stream_free("cuda:0", (struct CUstream_st *)(void *)&made);
}

static void a_missing_driver_is_reported(void **unused)
{
    (void)unused;
    setenv("TOKMAP_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
    no_device("/nowhere/libcuda.so.1", 0);
    setenv("TOKMAP_CUDA_DRIVER", "libm.so.6", 1);
    no_device("cuInit", 0);
    setenv("TOKMAP_CUDA_DRIVER", driver->path, 1);
    configure("stub");
    no_device("stub", CUDA_ERROR_STUB_LIBRARY);
    configure("devices=0");
    no_device("finds no device", CUDA_ERROR_NO_DEVICE);
    configure("");
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    no_device("CUDA_VISIBLE_DEVICES is \"\"", CUDA_ERROR_NO_DEVICE);
    unsetenv("CUDA_VISIBLE_DEVICES");
    configure("fail=cuInit:1+:802");
    no_device("fabric manager", 802);
    configure("fail=cuInit:1+:805");
    no_device("does not start", 805);
    /* A loader on the host works all the same. */
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_loader *loader;
    options.device = "cpu";
    assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
    struct tokmap_loader_device what = TOKMAP_LOADER_DEVICE_INIT;
    assert_int_equal(tokmap_loader_device(loader, &what), TOKMAP_OK);
    assert_int_equal(what.device, -1);
    assert_int_equal(what.device_bytes + what.pinned_bytes, 0);
    tokmap_loader_close(loader);
}

static void invalid_device_names_are_refused(void **unused)
{
    (void)unused;
    const char *const wrong[] = {"", "gpu", "cuda:", "cuda:x", "cuda:0x", "cuda:-1", "cuda 0", "CUDA:0", "cpu:0"};
    struct tokmap_loader_options options = device_options(0);
    void *memory;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        options.device = wrong[i];
        refused(&options, TOKMAP_ERROR_ARGUMENT, 0, "cuda:0");
        assert_int_equal(tokmap_cuda_memory_new(wrong[i], 8, &memory, NULL), TOKMAP_ERROR_ARGUMENT);
    }
    configure("devices=2");
    options.device = "cuda:2";
    refused(&options, TOKMAP_ERROR_NO_DEVICE, 0, "cuda:2");
    options.device = "cuda:99999";
    refused(&options, TOKMAP_ERROR_NO_DEVICE, 0, "99999");
    options.device = "cuda:99999999999999999999";
    refused(&options, TOKMAP_ERROR_ARGUMENT, 0, "cuda:0");
    struct tokmap_cuda_device_info what = TOKMAP_CUDA_DEVICE_INFO_INIT;
    assert_int_equal(tokmap_cuda_device(-1, &what, NULL), TOKMAP_ERROR_NO_DEVICE);
    assert_int_equal(tokmap_cuda_device(2, &what, NULL), TOKMAP_ERROR_NO_DEVICE);
    assert_int_equal(tokmap_cuda_device(1, &what, NULL), TOKMAP_OK);
    assert_true(what.name[0] && what.memory && what.capability_major);
    assert_int_equal(tokmap_cuda_memory_new("cpu", 8, &memory, NULL), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_cuda_memory_new(NULL, 8, &memory, NULL), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_cuda_memory_new("cuda:0", 0, &memory, NULL), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_cuda_memory_new("cuda:0", 8, NULL, NULL), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_cuda_probe(NULL, NULL), TOKMAP_ERROR_ARGUMENT);
    what.size = sizeof what + 1;
    assert_int_equal(tokmap_cuda_device(0, &what, NULL), TOKMAP_ERROR_ARGUMENT);
}

static void cuda_without_a_number_is_the_current_device(void **unused)
{
    (void)unused;
    struct tokmap_loader_options options = device_options(0);
    struct tokmap_loader_device what = TOKMAP_LOADER_DEVICE_INIT;
    struct tokmap_loader *loader;
    CUcontext context, now, popped;
    configure("devices=3");
    options.device = "cuda";
    assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_loader_device(loader, &what), TOKMAP_OK);
    assert_int_equal(what.device, 0);
    tokmap_loader_close(loader);
    assert_int_equal(driver->cuDevicePrimaryCtxRetain(&context, 2), 0);
    assert_int_equal(driver->cuCtxPushCurrent(context), 0);
    assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_loader_device(loader, &what), TOKMAP_OK);
    assert_int_equal(what.device, 2);
    tokmap_loader_close(loader);
    assert_int_equal(driver->cuCtxGetCurrent(&now), 0);
    assert_ptr_equal(now, context);
    assert_int_equal(driver->cuCtxPopCurrent(&popped), 0);
    assert_int_equal(driver->cuDevicePrimaryCtxRelease(2), 0);
}

/* The caller works on another device; the context of that device is current after each call. */
static void the_callers_context_stays(void **unused)
{
    (void)unused;
    for (uint32_t threads = 0; threads < 2; threads++) {
        struct tokmap_loader_options options = device_options(threads);
        struct consumer consumer;
        CUcontext other, now, popped;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        configure("devices=2");
        assert_int_equal(driver->cuDevicePrimaryCtxRetain(&other, 1), 0);
        assert_int_equal(driver->cuCtxPushCurrent(other), 0);
        outputs_new(&consumer, "cuda:0");
        assert_int_equal(tokmap_loader_open(&consumer.loader, run, &options, NULL), TOKMAP_OK);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(tokmap_cuda_next(consumer.loader, &consumer.out, consumer.stream, &batch, NULL),
                             TOKMAP_OK);
            assert_int_equal(driver->cuCtxGetCurrent(&now), 0);
            assert_ptr_equal(now, other);
            check_batch(&consumer, &batch);
        }
        tokmap_loader_close(consumer.loader);
        outputs_free(&consumer);
        assert_int_equal(driver->cuCtxPopCurrent(&popped), 0);
        assert_ptr_equal(popped, other);
        assert_int_equal(driver->cuCtxGetCurrent(&now), 0);
        assert_null(now);
        assert_int_equal(driver->cuDevicePrimaryCtxRelease(1), 0);
    }
}

/* ---- every call fails once ---- */

static const char *const entry_names[] = {
#define ENTRY_NAME(name, symbol, arguments) #name,
    CUDA_ENTRIES(ENTRY_NAME)
#undef ENTRY_NAME
};

static void each_call_fails_once_at_opening(void **unused)
{
    (void)unused;
    struct tokmap_loader_options options = device_options(0);
    struct cuda_software_counts counts;
    struct tokmap_loader *loader;
    struct tokmap_error error;
    char words[100];
    unsigned refused_opens = 0, opened = 0;
    driver->reset();
    assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
    driver->counts(&counts);
    tokmap_loader_close(loader);
    for (unsigned entry = 0; entry < CUDA_ENTRY_COUNT; entry++) {
        for (uint64_t call = 1; call <= counts.calls[entry]; call++) {
            (void)snprintf(words, sizeof words, "fail=%s:%llu:719", entry_names[entry], (unsigned long long)call);
            configure(words);
            enum tokmap_status status = tokmap_loader_open(&loader, run, &options, &error);
            configure("");
            if (!status) {
                /* The loader opens without these calls: registering its memory, loading the kernel, finding the
                 * NUMA node, changing the capture mode. */
                tokmap_loader_close(loader);
                opened++;
            } else {
                refused_opens++;
                if (status != TOKMAP_ERROR_DEVICE && status != TOKMAP_ERROR_NO_DEVICE)
                    fail_msg("%s: the status is %s", words, tokmap_status_name(status));
                assert_int_equal(error.device, 719);
                assert_non_null(strstr(error.message, "CUDA_ERROR_LAUNCH_FAILED"));
            }
            struct cuda_software_counts now;
            driver->counts(&now);
            if (now.contexts || now.streams || now.events || now.device_allocations || now.host_registrations ||
                now.modules)
                fail_msg("%s leaves something behind", words);
        }
    }
    assert_true(refused_opens >= 10);
    assert_true(opened >= 2);
}

/* Each function that is called while batches flow fails once, in its 1st, 3rd, .. 9th call. The whole run must be
 * delivered nevertheless. */
static void each_call_fails_once_while_batches_flow(void **unused)
{
    (void)unused;
    /* clang-format off */
    static const char *const calls[] = {
        "cuCtxGetCurrent",   "cuCtxPushCurrent", "cuEventSynchronize",    "cuStreamWaitEvent",
        "cuCtxSetCurrent",   "cuEventCreate",
        "cuMemcpyHtoDAsync", "cuEventRecord",    "cuEventQuery",          "cuLaunchKernel",
        "cuStreamGetCtx",    "cuStreamQuery",    "cuPointerGetAttribute", "cuThreadExchangeStreamCaptureMode"};
    /* clang-format on */
    unsigned failures = 0;
    for (uint32_t threads = 0; threads < 2; threads++) {
        for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
            for (int nth = 1; nth < 10; nth += 2) {
                struct tokmap_loader_options options = device_options(threads);
                struct consumer consumer;
                char words[100];
                options.ring_bytes = 9000; /* a few slots, so that the producer has not made all its calls yet */
                configure("");
                outputs_new(&consumer, "cuda:0");
                assert_int_equal(tokmap_loader_open(&consumer.loader, run, &options, NULL), TOKMAP_OK);
                /* Checking a batch makes calls of the driver, too, which could take the failure. So batches are not
                 * checked before it has happened. */
                (void)snprintf(words, sizeof words, "delay=30,seed=%d,fail=%s:%d:999", nth, calls[i], nth);
                configure(words);
                struct tokmap_batch batch = TOKMAP_BATCH_INIT;
                struct tokmap_error error;
                enum tokmap_status status = TOKMAP_OK;
                for (int step = 0; step < 3 && !status; step++)
                    status = tokmap_cuda_next(consumer.loader, &consumer.out, consumer.stream, &batch, &error);
                uint64_t seen = status ? 0 : batch.places[batch.count - 1].step * BATCH + batch.count;
                if (status) {
                    failures++;
                    assert_int_equal(status, TOKMAP_ERROR_DEVICE);
                    assert_int_equal(error.device, 999);
                    assert_non_null(strstr(error.message, "CUDA_ERROR_UNKNOWN"));
                    assert_int_equal(batch.count, 0);
                    assert_int_equal(tokmap_cuda_next(consumer.loader, &consumer.out, consumer.stream, &batch, &error),
                                     TOKMAP_OK);
                    seen = batch.places[0].step * BATCH + batch.places[0].row;
                    assert_true(seen <= 3 * BATCH);
                    seen += batch.count;
                }
                configure("delay=30,seed=1");
                consumer.rows = seen;
                failures += consume(&consumer, 999); /* the producer may have met the failure for a later batch */
                assert_int_equal(consumer.rows, (made.tokens - 1) / SEQ_LEN / BATCH * BATCH);
                tokmap_loader_close(consumer.loader);
                outputs_free(&consumer);
                configure("");
                software_driver_is_content();
                software_driver_is_empty();
            }
        }
    }
    assert_true(failures >= 30);
}

static void a_permanent_failure_stays_a_status(void **unused)
{
    (void)unused;
    static const char *const calls[] = {"cuMemcpyHtoDAsync", "cuLaunchKernel", "cuEventRecord", "cuStreamWaitEvent"};
    for (uint32_t threads = 0; threads < 2; threads++) {
        for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
            struct tokmap_loader_options options = device_options(threads);
            struct consumer consumer;
            struct tokmap_batch batch = TOKMAP_BATCH_INIT;
            struct tokmap_error error;
            char words[100];
            unsigned failures = 0;
            options.ring_bytes = 9000;
            outputs_new(&consumer, "cuda:0");
            assert_int_equal(tokmap_loader_open(&consumer.loader, run, &options, NULL), TOKMAP_OK);
            (void)snprintf(words, sizeof words, "delay=50,fail=%s:2+:999", calls[i]);
            configure(words);
            for (int n = 0; n < 60; n++) {
                enum tokmap_status status =
                    tokmap_cuda_next(consumer.loader, &consumer.out, consumer.stream, &batch, &error);
                if (!status && !failures)
                    continue;
                if (status == TOKMAP_END)
                    break;
                /* A copy that has completed needs no wait, so next() can succeed. */
                if (!status && !strcmp(calls[i], "cuStreamWaitEvent"))
                    continue;
                assert_int_equal(status, TOKMAP_ERROR_DEVICE);
                failures++;
            }
            assert_true(failures > 10 || !strcmp(calls[i], "cuStreamWaitEvent"));
            tokmap_loader_close(consumer.loader);
            configure("");
            outputs_free(&consumer);
            software_driver_is_content();
            software_driver_is_empty();
        }
    }
}

/* After a fault of the device every call of the driver fails. The loader reports that and can be closed. */
static void a_lost_context_is_a_status(void **unused)
{
    (void)unused;
    static const char *const late[] = {"delay=40,late=cuLaunchKernel:3", "delay=40,late=cuMemcpyHtoDAsync:4",
                                       "late=cuLaunchKernel:1"};
    for (uint32_t threads = 0; threads < 2; threads++) {
        for (size_t i = 0; i < sizeof late / sizeof late[0]; i++) {
            struct tokmap_loader_options options = device_options(threads);
            struct consumer consumer;
            struct tokmap_batch batch = TOKMAP_BATCH_INIT;
            struct tokmap_error error;
            enum tokmap_status status = TOKMAP_OK;
            options.ring_bytes = 9000;
            outputs_new(&consumer, "cuda:0");
            assert_int_equal(tokmap_loader_open(&consumer.loader, run, &options, NULL), TOKMAP_OK);
            configure(late[i]);
            for (int n = 0; n < 10 && !status; n++) {
                status = tokmap_cuda_next(consumer.loader, &consumer.out, consumer.stream, &batch, &error);
                if (!status)
                    status = tokmap_cuda_stream_synchronize("cuda:0", consumer.stream, &error);
            }
            assert_int_equal(status, TOKMAP_ERROR_DEVICE);
            assert_int_equal(error.device, CUDA_ERROR_ILLEGAL_ADDRESS);
            assert_non_null(strstr(error.message, "earlier kernel"));
            for (int n = 0; n < 5; n++) {
                status = tokmap_cuda_next(consumer.loader, &consumer.out, consumer.stream, &batch, &error);
                assert_int_equal(status, TOKMAP_ERROR_DEVICE);
                assert_int_equal(error.device, CUDA_ERROR_ILLEGAL_ADDRESS);
            }
            tokmap_loader_close(consumer.loader);
            outputs_free(&consumer);
            configure("");
            software_driver_is_content();
            software_driver_is_empty();
        }
    }
}

/* ---- the driver does not accept the kernel: the host expands ---- */

static uint64_t output_bytes(const struct tokmap_loader *loader)
{
    return tokmap_loader_rows(loader) * (SEQ_LEN + 1) * 8 + tokmap_loader_cu_seqlens(loader) * 4;
}

/* Collects every field of every batch in a new buffer on the host. */
static void collect(struct tokmap_loader *loader, const char *device, enum tokmap_id_type type, uint8_t **bytes,
                    uint64_t *length)
{
    uint64_t room = output_bytes(loader), capacity = 64 * 7 * room;
    struct tokmap_out out = TOKMAP_OUT_INIT;
    void *at[7];
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    *bytes = calloc(1, capacity);
    *length = 0;
    assert_non_null(*bytes);
    for (int i = 0; i < 7; i++) {
        at[i] = device ? device_memory(device, room) : malloc(room);
        assert_non_null(at[i]);
    }
    out.type = type;
    out.inputs = at[0];
    out.targets = at[1];
    out.position_ids = at[2];
    out.document_ids = at[3];
    out.loss_mask = at[4];
    out.rows = at[5];
    out.cu_seqlens = at[6];
    while (!tokmap_loader_next(loader, &out, NULL, &batch, NULL)) {
        uint64_t field = batch.tokens * (type == TOKMAP_ID_I64 ? 8 : 4);
        const uint64_t sizes[7] = {field,
                                   field,
                                   field,
                                   field,
                                   field,
                                   batch.count * batch.row_tokens * batch.width,
                                   tokmap_loader_cu_seqlens(loader) * 4};
        for (int i = 0; i < 7; i++) {
            assert_true(*length + sizes[i] <= capacity);
            if (!device)
                memcpy(*bytes + *length, at[i], sizes[i]);
            else
                assert_int_equal(tokmap_cuda_memory_read(device, *bytes + *length, at[i], sizes[i], NULL, NULL),
                                 TOKMAP_OK);
            *length += sizes[i];
        }
    }
    for (int i = 0; i < 7; i++) {
        if (device)
            tokmap_cuda_memory_free(device, at[i]);
        else
            free(at[i]);
    }
}

static void without_the_kernel_the_host_expands(void **unused)
{
    (void)unused;
    static const char *const words[] = {"", "fail=cuModuleLoadDataEx:1+:222", "fail=cuModuleGetFunction:1+:500"};
    for (uint32_t threads = 0; threads < 2; threads++) {
        for (unsigned wide = 0; wide < 2; wide++) {
            const enum tokmap_id_type type = wide ? TOKMAP_ID_I64 : TOKMAP_ID_I32;
            struct tokmap_loader_options options = device_options(threads);
            struct tokmap_loader *loader;
            uint8_t *expected, *found;
            uint64_t expected_length, found_length;
            options.fields = ALL_FIELDS;
            options.mask_targets = 1;
            options.rows = 3; /* calls of 2 rows */
            options.device = NULL;
            assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
            collect(loader, NULL, type, &expected, &expected_length);
            tokmap_loader_close(loader);
            assert_true(expected_length > 1000);
            for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
                struct tokmap_loader_device what = TOKMAP_LOADER_DEVICE_INIT;
                struct tokmap_stats stats = TOKMAP_STATS_INIT;
                options.device = "cuda:0";
                configure(words[i]);
                assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
                configure("delay=60,seed=5");
                assert_int_equal(tokmap_loader_device(loader, &what), TOKMAP_OK);
                assert_int_equal(what.device, 0);
                assert_int_equal(what.kernel, i == 0);
                assert_int_equal(what.reason[0] != 0, i > 0);
                if (i == 1)
                    assert_non_null(strstr(what.reason, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"));
                assert_true(what.pinned_bytes > 0);
                assert_int_equal(what.device_bytes > 0, i == 0);
                collect(loader, "cuda:0", type, &found, &found_length);
                assert_int_equal(tokmap_loader_stats(loader, &stats), TOKMAP_OK);
                assert_int_equal(stats.host_expanded, i ? stats.batches : 0);
                assert_int_equal(stats.device_bytes, what.device_bytes);
                tokmap_loader_close(loader);
                assert_int_equal(found_length, expected_length);
                assert_memory_equal(found, expected, expected_length);
                free(found);
            }
            free(expected);
        }
    }
}

/* ---- memory ---- */

static void out_of_memory_is_a_status(void **unused)
{
    (void)unused;
    struct tokmap_loader_options options = device_options(1);
    struct tokmap_loader *loader;
    void *memory = &options;
    configure("pinned=4096");
    refused(&options, TOKMAP_ERROR_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, "page-locking");
    configure("memory=4096");
    refused(&options, TOKMAP_ERROR_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, "GPU memory");
    assert_int_equal(tokmap_cuda_memory_new("cuda:0", 1 << 20, &memory, NULL), TOKMAP_ERROR_MEMORY);
    assert_null(memory);
    configure("pinned=4096,fail=cuModuleLoadDataEx:1+:222");
    refused(&options, TOKMAP_ERROR_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, "page-locking");
    /* Where the driver cannot register the loader's memory, the driver allocates it. */
    configure("fail=cuMemHostRegister:1+:801");
    assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
    configure("");
    struct cuda_software_counts counts;
    driver->counts(&counts);
    assert_int_equal(counts.host_registrations, 0);
    assert_int_equal(counts.host_allocations, 1);
    struct consumer consumer;
    outputs_new(&consumer, "cuda:0");
    consumer.loader = loader;
    assert_int_equal(consume(&consumer, 0), 0);
    tokmap_loader_close(loader);
    outputs_free(&consumer);
}

/* ---- mistakes of the caller ---- */

static void next_refuses(struct tokmap_loader *loader, const struct tokmap_out *out, struct CUstream_st *stream,
                         const char *words, const char *more)
{
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct tokmap_error error;
    assert_int_equal(tokmap_cuda_next(loader, out, stream, &batch, &error), TOKMAP_ERROR_ARGUMENT);
    if (!strstr(error.message, words) || !strstr(error.message, more))
        fail_msg("the message \"%s\" does not contain both \"%s\" and \"%s\"", error.message, words, more);
}

static void wrong_streams_and_outputs_are_refused(void **unused)
{
    (void)unused;
    static int32_t on_host[BATCH * SEQ_LEN];
    for (uint32_t threads = 0; threads < 2; threads++) {
        struct tokmap_loader_options options = device_options(threads);
        struct consumer consumer;
        struct CUstream_st *other;
        struct tokmap_out out;
        configure("devices=2");
        outputs_new(&consumer, "cuda:0");
        assert_int_equal(tokmap_cuda_stream_new("cuda:1", &other, NULL), TOKMAP_OK);
        void *elsewhere = device_memory("cuda:1", BATCH * SEQ_LEN * 4);
        assert_int_equal(tokmap_loader_open(&consumer.loader, run, &options, NULL), TOKMAP_OK);
        next_refuses(consumer.loader, &consumer.out, other, "cuda:1", "cuda:0");
        /* A capturing stream is reported as that, even if it also belongs to another device: most questions about a
         * stream are forbidden while it captures. */
        CUcontext context;
        CUgraph graph;
        assert_int_equal(driver->cuDevicePrimaryCtxRetain(&context, 1), 0);
        assert_int_equal(driver->cuCtxPushCurrent(context), 0);
        assert_int_equal(driver->cuStreamBeginCapture((CUstream)other, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
        next_refuses(consumer.loader, &consumer.out, other, "captur", "graph");
        /* A graph cannot wait for work outside of it, and the attempt would spoil the capture. */
        struct tokmap_error error = {0};
        struct CUstream_st *const outside[] = {NULL, (struct CUstream_st *)1, (struct CUstream_st *)2};
        for (int i = 0; i < 3; i++)
            assert_int_equal(tokmap_cuda_stream_wait("cuda:1", other, outside[i], &error), TOKMAP_ERROR_ARGUMENT);
        assert_non_null(strstr(error.message, "capturing a graph"));
        assert_int_equal(error.device, 0);
        assert_int_equal(driver->cuStreamEndCapture((CUstream)other, &graph), 0);
        assert_int_equal(driver->cuCtxPopCurrent(NULL), 0);
        assert_int_equal(driver->cuDevicePrimaryCtxRelease(1), 0);
        out = consumer.out;
        out.targets = on_host;
        next_refuses(consumer.loader, &out, consumer.stream, "targets", "host memory");
        out.targets = elsewhere;
        next_refuses(consumer.loader, &out, consumer.stream, "targets", "cuda:1");
        out.targets = (char *)consumer.out.targets + 2;
        next_refuses(consumer.loader, &out, consumer.stream, "targets", "multiple of 4");
        out = consumer.out;
        out.inputs = NULL;
        next_refuses(consumer.loader, &out, consumer.stream, "inputs", "NULL");
        /* No batch was lost. */
        assert_int_equal(consume(&consumer, 0), 0);
        assert_int_equal(consumer.rows, (made.tokens - 1) / SEQ_LEN / BATCH * BATCH);
        tokmap_loader_close(consumer.loader);
        tokmap_cuda_memory_free("cuda:1", elsewhere);
        tokmap_cuda_stream_free("cuda:1", other);
        outputs_free(&consumer);
    }
}

static void calls_without_outputs_and_empty_calls(void **unused)
{
    (void)unused;
    for (uint32_t threads = 0; threads < 2; threads++) {
        struct tokmap_loader_options options = device_options(threads);
        struct consumer consumer;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        struct cuda_software_counts before, after;
        uint64_t calls = 0, empty = 0, rows = 0;
        outputs_new(&consumer, "cuda:0");
        /* Calls without outputs deliver pointers to the rows, in host memory. */
        assert_int_equal(tokmap_loader_open(&consumer.loader, run, &options, NULL), TOKMAP_OK);
        while (!tokmap_cuda_next(consumer.loader, calls % 2 ? &consumer.out : NULL, consumer.stream, &batch, NULL)) {
            for (uint64_t i = 0; i < batch.count; i++)
                assert_true(made_row_is(&made, batch.rows[i], batch.places[i].first_token, SEQ_LEN + 1));
            consumer.rows = batch.places[0].step * BATCH + batch.places[0].row;
            if (calls++ % 2)
                check_batch(&consumer, &batch);
        }
        tokmap_loader_close(consumer.loader);
        /* 4 rows on 3 ranks with one row per call: rank 2 has two rows, so rank 0, which has one, gets an empty call.
         * */
        options.world = 3;
        options.rows = 1;
        driver->counts(&before);
        assert_int_equal(tokmap_loader_open(&consumer.loader, run, &options, NULL), TOKMAP_OK);
        while (!tokmap_cuda_next(consumer.loader, &consumer.out, consumer.stream, &batch, NULL)) {
            empty += !batch.count;
            rows += batch.count;
        }
        assert_int_equal(tokmap_cuda_stream_synchronize("cuda:0", consumer.stream, NULL), TOKMAP_OK);
        driver->counts(&after);
        assert_int_equal(empty, rows);
        assert_int_equal(after.launches - before.launches, rows);
        tokmap_loader_close(consumer.loader);
        /* Without fields nothing is sent to the device. */
        options.fields = 0;
        assert_int_equal(tokmap_loader_open(&consumer.loader, run, &options, NULL), TOKMAP_OK);
        driver->counts(&before);
        while (!tokmap_cuda_next(consumer.loader, &consumer.out, consumer.stream, &batch, NULL))
            assert_true(!batch.count || made_row_is(&made, batch.rows[0], batch.places[0].first_token, SEQ_LEN + 1));
        assert_int_equal(tokmap_cuda_stream_synchronize("cuda:0", consumer.stream, NULL), TOKMAP_OK);
        driver->counts(&after);
        assert_int_equal(after.launches, before.launches);
        assert_int_equal(after.copies, before.copies);
        tokmap_loader_close(consumer.loader);
        outputs_free(&consumer);
    }
}

/* ---- fork, and closing ---- */

static void a_forked_child_gets_a_status(void **unused)
{
    (void)unused;
    for (uint32_t threads = 0; threads < 2; threads++) {
        struct tokmap_loader_options options = device_options(threads);
        struct consumer consumer;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        outputs_new(&consumer, "cuda:0");
        assert_int_equal(tokmap_loader_open(&consumer.loader, run, &options, NULL), TOKMAP_OK);
        assert_int_equal(tokmap_cuda_next(consumer.loader, &consumer.out, consumer.stream, &batch, NULL), TOKMAP_OK);
        check_batch(&consumer, &batch);
        pid_t child = fork();
        assert_true(child >= 0);
        if (!child) {
            struct tokmap_error error;
            struct tokmap_loader *second;
            int wrong = tokmap_cuda_next(consumer.loader, &consumer.out, consumer.stream, &batch, &error) !=
                            TOKMAP_ERROR_ARGUMENT ||
                        !strstr(error.message, "parent");
            wrong += tokmap_loader_open(&second, run, &options, &error) != TOKMAP_ERROR_NO_DEVICE ||
                     !strstr(error.message, "forked");
            tokmap_loader_close(consumer.loader);
            _exit(wrong);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_int_equal(consume(&consumer, 0), 0);
        assert_int_equal(consumer.rows, (made.tokens - 1) / SEQ_LEN / BATCH * BATCH);
        tokmap_loader_close(consumer.loader);
        outputs_free(&consumer);
    }
}

static void closing_at_any_moment(void **unused)
{
    (void)unused;
    for (uint32_t threads = 0; threads < 2; threads++) {
        for (unsigned batches = 0; batches < 8; batches++) {
            struct tokmap_loader_options options = device_options(threads);
            struct consumer consumer;
            struct tokmap_batch batch = TOKMAP_BATCH_INIT;
            char words[60];
            outputs_new(&consumer, "cuda:0");
            (void)snprintf(words, sizeof words, "delay=500,seed=%u", batches);
            configure(words);
            assert_int_equal(tokmap_loader_open(&consumer.loader, run, &options, NULL), TOKMAP_OK);
            for (unsigned i = 0; i < batches; i++)
                assert_int_equal(tokmap_cuda_next(consumer.loader, &consumer.out, consumer.stream, &batch, NULL),
                                 TOKMAP_OK);
            tokmap_loader_close(consumer.loader);
            outputs_free(&consumer);
            software_driver_is_content();
            software_driver_is_empty();
        }
    }
}

/* ---- order ---- */

/* Two streams, each with its own outputs, take the batches alternately. The loader must keep its slots in order. */
static void streams_alternate(void **unused)
{
    (void)unused;
    for (uint32_t threads = 0; threads < 2; threads++) {
        struct tokmap_loader_options options = device_options(threads);
        struct consumer consumers[2];
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        unsigned turn = 0;
        uint64_t rows = 0;
        options.ring_bytes = 9000; /* a few slots */
        for (int i = 0; i < 2; i++)
            outputs_new(&consumers[i], "cuda:0");
        configure("delay=300,seed=8");
        assert_int_equal(tokmap_loader_open(&consumers[0].loader, run, &options, NULL), TOKMAP_OK);
        while (!tokmap_cuda_next(consumers[0].loader, &consumers[turn].out, consumers[turn].stream, &batch, NULL)) {
            consumers[turn].rows = rows;
            if (rows / BATCH % 3 == 2) /* otherwise nobody waits for the stream */
                check_batch(&consumers[turn], &batch);
            rows += batch.count;
            turn = !turn;
        }
        assert_int_equal(rows, (made.tokens - 1) / SEQ_LEN / BATCH * BATCH);
        tokmap_loader_close(consumers[0].loader);
        for (int i = 0; i < 2; i++)
            outputs_free(&consumers[i]);
    }
}

/* A stream that waits for another reads what that one has written. Without the wait, the emulated driver reports a
 * violation. The access without the wait is a data race, which the thread sanitizer would report as well. */
static void a_stream_waits_for_another(void **unused)
{
    (void)unused;
#ifdef THREAD_SANITIZER
    const int last = 1;
#else
    const int last = 0;
#endif
    for (int ordered = 1; ordered >= last; ordered--) {
        struct tokmap_loader_options options = device_options(1);
        struct consumer consumer;
        struct CUstream_st *reader, *writer;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        outputs_new(&consumer, "cuda:0");
        writer = consumer.stream;
        assert_int_equal(tokmap_cuda_stream_new("cuda:0", &reader, NULL), TOKMAP_OK);
        assert_int_equal(tokmap_loader_open(&consumer.loader, run, &options, NULL), TOKMAP_OK);
        configure("delay=2000,seed=2");
        assert_int_equal(tokmap_cuda_next(consumer.loader, &consumer.out, writer, &batch, NULL), TOKMAP_OK);
        if (ordered) {
            assert_int_equal(tokmap_cuda_stream_wait("cuda:0", reader, writer, NULL), TOKMAP_OK);
            consumer.stream = reader;
            check_batch(&consumer, &batch);
            software_driver_is_content();
        } else {
            static int32_t inputs[BATCH * SEQ_LEN];
            assert_int_equal(
                tokmap_cuda_memory_read("cuda:0", inputs, consumer.out.inputs, sizeof inputs, reader, NULL), TOKMAP_OK);
            software_driver_complains("");
        }
        tokmap_loader_close(consumer.loader);
        tokmap_cuda_stream_free("cuda:0", reader);
        consumer.stream = writer;
        outputs_free(&consumer);
    }
}

static void a_loader_is_near_its_device(void **unused)
{
    (void)unused;
    static const char *const words[] = {"numa=0", "numa=-1",
                                        "numa=900"}; /* no processor of this machine is on node 900 */
    const int nodes[] = {0, -1, 900};
    for (int i = 0; i < 3; i++) {
        struct tokmap_loader_options options = device_options(1);
        struct tokmap_loader_device what = TOKMAP_LOADER_DEVICE_INIT;
        struct tokmap_cuda_device_info info = TOKMAP_CUDA_DEVICE_INFO_INIT;
        struct consumer consumer;
        configure(words[i]);
        outputs_new(&consumer, "cuda:0");
        assert_int_equal(tokmap_cuda_device(0, &info, NULL), TOKMAP_OK);
        assert_int_equal(info.numa_node, nodes[i]);
        assert_int_equal(tokmap_loader_open(&consumer.loader, run, &options, NULL), TOKMAP_OK);
        assert_int_equal(tokmap_loader_device(consumer.loader, &what), TOKMAP_OK);
        assert_int_equal(what.numa_node, nodes[i]);
        assert_int_equal(consume(&consumer, 0), 0);
        tokmap_loader_close(consumer.loader);
        outputs_free(&consumer);
    }
    struct tokmap_loader_device what = TOKMAP_LOADER_DEVICE_INIT;
    assert_int_equal(tokmap_loader_device(NULL, &what), TOKMAP_ERROR_ARGUMENT);
}

/* Batches whose copy was under way when next() took them are counted, and no others. */
static void late_copies_are_counted(void **unused)
{
    (void)unused;
    struct tokmap_loader_options options = device_options(1);
    struct tokmap_stats stats = TOKMAP_STATS_INIT;
    struct consumer consumer;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    outputs_new(&consumer, "cuda:0");
    driver->hold(1); /* no copy completes */
    assert_int_equal(tokmap_loader_open(&consumer.loader, run, &options, NULL), TOKMAP_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tokmap_cuda_next(consumer.loader, &consumer.out, consumer.stream, &batch, NULL), TOKMAP_OK);
    driver->hold(0);
    assert_int_equal(tokmap_loader_stats(consumer.loader, &stats), TOKMAP_OK);
    assert_int_equal(stats.late_copies, 3);
    /* The copies of all slots in the ring have completed. */
    do {
        usleep(2000);
        assert_int_equal(tokmap_loader_stats(consumer.loader, &stats), TOKMAP_OK);
    } while (stats.ring_ready < 5);
    CUcontext context, popped;
    assert_int_equal(driver->cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(driver->cuCtxPushCurrent(context), 0);
    assert_int_equal(driver->cuCtxSynchronize(), 0);
    assert_int_equal(tokmap_cuda_next(consumer.loader, &consumer.out, consumer.stream, &batch, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_loader_stats(consumer.loader, &stats), TOKMAP_OK);
    assert_int_equal(stats.late_copies, 3);
    consumer.rows = batch.places[0].step * BATCH + batch.places[0].row;
    check_batch(&consumer, &batch);
    assert_int_equal(driver->cuCtxPopCurrent(&popped), 0);
    assert_int_equal(driver->cuDevicePrimaryCtxRelease(0), 0);
    tokmap_loader_close(consumer.loader);
    outputs_free(&consumer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_missing_driver_is_reported, finish),
        cmocka_unit_test_teardown(invalid_device_names_are_refused, finish),
        cmocka_unit_test_teardown(cuda_without_a_number_is_the_current_device, finish),
        cmocka_unit_test_teardown(the_callers_context_stays, finish),
        cmocka_unit_test_teardown(each_call_fails_once_at_opening, finish),
        cmocka_unit_test_teardown(each_call_fails_once_while_batches_flow, finish),
        cmocka_unit_test_teardown(a_permanent_failure_stays_a_status, finish),
        cmocka_unit_test_teardown(a_lost_context_is_a_status, finish),
        cmocka_unit_test_teardown(without_the_kernel_the_host_expands, finish),
        cmocka_unit_test_teardown(out_of_memory_is_a_status, finish),
        cmocka_unit_test_teardown(wrong_streams_and_outputs_are_refused, finish),
        cmocka_unit_test_teardown(calls_without_outputs_and_empty_calls, finish),
        cmocka_unit_test_teardown(a_forked_child_gets_a_status, finish),
        cmocka_unit_test_teardown(closing_at_any_moment, finish),
        cmocka_unit_test_teardown(streams_alternate, finish),
        cmocka_unit_test_teardown(a_stream_waits_for_another, finish),
        cmocka_unit_test_teardown(a_loader_is_near_its_device, finish),
        cmocka_unit_test_teardown(late_copies_are_counted, finish),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
