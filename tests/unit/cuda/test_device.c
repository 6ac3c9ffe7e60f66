/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * Loaders on a GPU deliver the same bytes as loaders on the host, however late the device, the producer, or the
 * consumer is, and leave nothing behind. The tests run on the emulated driver, which also reports every access that no
 * stream or event puts in order. With TOKMAP_TEST_GPU in the environment they run on a real GPU, and skip what only the
 * emulated driver can find out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/os.h"
#include "support/device_case.h"
#include "support/run_help.h"
#include "support/scratch.h"
#include "support/software_driver.h"

static char folder[512];
static struct made wide, narrow;
static unsigned cases;   /* number of cases of each random test; smaller under sanitizers */
static uint64_t time_ns; /* of each random test; no further case begins after it. 0: no limit */
static uint64_t ran;     /* cases */

#define RANDOM_TESTS 4

static int setup(void **unused)
{
    (void)unused;
    const uint64_t one[] = {9001}, many[] = {700, 3, 1, 2900, 512};
    scratch_make(folder);
    made_new(&wide, folder, "wide", 4, 9001, one, 1);
    made_new(&narrow, folder, "narrow", 2, 50257, many, 5);
    device_case_give_values(wide.name);
    device_case_give_values(narrow.name);
    const char *sanitizer = getenv("SANITIZE");
    const char *given = getenv("DEVICE_CASES");
    cases = given ? (unsigned)strtoul(given, NULL, 10) : sanitizer && *sanitizer ? 25 : 100;
    const char *seconds = getenv("DEVICE_SECONDS");
    time_ns = seconds ? strtoull(seconds, NULL, 10) * 1000000000 / RANDOM_TESTS : 0;
    return 0;
}

/* Returns whether case i of the `most` cases of a test is to be run, and counts it. Each test has its own time, so that
 * one that is slow on some machine leaves the others theirs. */
static bool is_next(unsigned i, unsigned most)
{
    static uint64_t from;
    if (!i)
        from = os_clock_ns();
    bool next = i < most && (!i || !time_ns || os_clock_ns() - from < time_ns);
    ran += next;
    return next;
}

static int teardown(void **unused)
{
    (void)unused;
    print_message("%llu random cases\n", (unsigned long long)ran);
    made_free(&wide);
    made_free(&narrow);
    scratch_remove(folder);
    return 0;
}

/* After each test. */
static int clean(void **unused)
{
    (void)unused;
    if (!device_is_real())
        software_driver()->hold(0);
    device_configure("%s", "");
    device_is_clean();
    return 0;
}

static struct tokmap_run *parse(const char *text)
{
    struct tokmap_run *run;
    struct tokmap_error error;
    if (run_parse_in(&run, text, folder, &error))
        fail_msg("%s: %s", text, error.message);
    return run;
}

static void run_case(struct device_case *test, const char *text)
{
    struct tokmap_run *run = parse(text);
    test->run = run;
    device_case_run(test);
    tokmap_run_close(run);
    if (*test->failure)
        fail_msg("seed %llu: %s\nrun:\n%sfields %u, type %u, threads %u, rows %llu, rank %llu of %llu, slots %llu, "
                 "ahead %u, "
                 "streams %u, one output %d",
                 (unsigned long long)test->seed, test->failure, text, test->options.fields, (unsigned)test->type,
                 test->options.threads, (unsigned long long)test->options.rows, (unsigned long long)test->options.rank,
                 (unsigned long long)test->options.world, (unsigned long long)test->slots, test->ahead, test->streams,
                 test->one_output);
}

/* Lets a case exclude some documents of `data` from step 2 on. */
static void exclude_some(struct device_case *test, char text[600])
{
    const uint32_t targets = TOKMAP_TARGETS | TOKMAP_TARGETS_AHEAD;
    (void)snprintf(text + strlen(text), 600 - strlen(text), "exclude taken from 2\n");
    file_write_text(in_folder(folder, "taken"), "data 0\ndata 2\ndata 3\ndata 4\ndata 7\n");
    if (test->options.fields & targets)
        test->options.fields |= TOKMAP_LOSS_MASK;
    else if ((test->options.fields & TOKMAP_INPUTS) && !(test->options.fields & (TOKMAP_LOSS_MASK | TOKMAP_LABELS)))
        test->options.mask_targets = 1;
}

/* ---- equal to the host ---- */

static void every_batch_equals_that_of_the_host(void **unused)
{
    (void)unused;
    static const unsigned delays[] = {0, 30, 300};
    uint64_t batches = 0, excluded = 0;
    unsigned seed = 1;
    for (; is_next(seed - 1, cases); seed++) {
        struct device_case test;
        char text[600];
        device_configure("seed=%u,delay=%u", seed, delays[seed % 3]);
        device_case_random(&test, seed, "narrow.list", "wide.list", text);
        if (seed % 4 == 3)
            exclude_some(&test, text);
        run_case(&test, text);
        excluded += test.stats.excluded;
        batches += test.batches;
        assert_int_equal(test.stats.host_expanded, 0);
        device_is_clean();
    }
    assert_true(seed > 1 && batches > (seed - 1) * 4);
    assert_true(seed < 20 || excluded > 0);
}

static void without_the_kernel_the_host_expands(void **unused)
{
    (void)unused;
    static const char *const refusals[] = {"fail=cuModuleLoadDataEx:1+:218", "fail=cuModuleLoadDataEx:1+:222",
                                           "fail=cuModuleGetFunction:1+:500"};
    if (device_is_real() && !getenv("CUDA_DISABLE_PTX_JIT")) /* see test_gpu.sh */
        skip();
    for (unsigned seed = 1; is_next(seed - 1, cases / 3); seed++) {
        struct device_case test;
        char text[400];
        device_configure("seed=%u,delay=%u,%s", seed, seed % 3 * 100, refusals[seed % 3]);
        device_case_random(&test, seed + 1000, "narrow.list", "wide.list", text);
        test.host_expands = true;
        run_case(&test, text);
        assert_true(test.stats.host_expanded <= test.batches);
        assert_true(test.batches < 8 || test.stats.host_expanded > 0);
        device_is_clean();
    }
}

/* The host is far ahead of a slow device. It must not expand into a buffer that is still being copied. */
static void the_host_waits_for_a_slow_device(void **unused)
{
    (void)unused;
    struct device_case test;
    if (device_is_real())
        skip();
    device_configure("seed=1,delay=400,fail=cuModuleLoadDataEx:1+:222");
    device_case_whole(&test, 1);
    test.options.fields = 127;
    test.options.rank = 0;
    test.options.world = 1;
    test.ahead = 16;
    test.streams = 1;
    test.one_output = false;
    test.host_expands = true;
    run_case(&test, "seq_len 100\nbatch 4\nseed 3\nsteps 48\nsource data narrow.list\n");
    device_is_clean();
}

/* A loader without fields still delivers the places of each batch, whether the GPU or the host expands. */
static void without_a_field_nothing_is_expanded(void **unused)
{
    (void)unused;
    for (unsigned kind = 0; kind < 4; kind++) {
        struct device_case test;
        if (kind & 1 && device_is_real())
            continue;
        device_configure("%s", kind & 1 ? "fail=cuModuleLoadDataEx:1+:222" : "");
        device_case_whole(&test, kind);
        test.options.fields = 0;
        test.options.mask_targets = false;
        test.options.threads = kind >> 1;
        test.options.rank = 0;
        test.options.world = 1;
        test.host_expands = kind & 1;
        run_case(&test, "seq_len 100\nbatch 4\nseed 3\nsteps 20\nsource data narrow.list\n");
        assert_true(test.batches >= 20);
        assert_int_equal(test.stats.host_expanded, 0);
        device_is_clean();
    }
}

/* The device does nothing until something waits for it. So if the loader forgets a wait, the work has not happened when
 * the loader relies on it, in every run of the test. More batches are under way than the ring has slots and the host
 * has bounces. */
static void a_device_may_be_as_late_as_the_calls_allow(void **unused)
{
    (void)unused;
    if (device_is_real())
        skip();
    for (unsigned kind = 0; kind < 16; kind++) {
        struct device_case test;
        bool host_expands = kind & 1;
        device_configure("lazy,seed=%u%s", kind, host_expands ? ",fail=cuModuleLoadDataEx:1+:222" : "");
        device_case_whole(&test, 100 + kind);
        test.options.fields = 127;
        test.options.rank = 0;
        test.options.world = 1;
        test.options.rows = 0;
        test.options.threads = kind >> 1 & 1;
        test.streams = kind & 4 ? 3 : 1;
        test.one_output = kind & 8;
        test.slots = 3;
        test.ahead = 16;
        test.host_expands = host_expands;
        run_case(&test, "seq_len 100\nbatch 4\nseed 3\nsteps 40\nsource data narrow.list\n");
        device_is_clean();
    }
}

/* A rewound loader must not fill a slot, or copy into its twin, before the work that was enqueued on the batches before
 * has used them. Half of the cases run on a device that does nothing until something waits for it. */
static void rewinding_leaves_enqueued_work_intact(void **unused)
{
    (void)unused;
    for (unsigned kind = 0; kind < 32; kind++) {
        struct device_case test;
        bool host_expands = kind & 1 && !device_is_real();
        device_configure("%s,seed=%u%s", kind & 16 ? "lazy" : "delay=100", kind,
                         host_expands ? ",fail=cuModuleLoadDataEx:1+:222" : "");
        device_case_whole(&test, 300 + kind);
        test.options.fields = 127;
        test.options.rank = 0;
        test.options.world = 1;
        test.options.rows = kind & 2 ? 3 : 0;
        test.options.threads = kind >> 2 & 1;
        test.streams = kind & 4 ? 3 : 1;
        test.one_output = kind & 8;
        test.slots = 3;
        test.ahead = 16;
        test.limit = UINT64_MAX;
        test.host_expands = host_expands;
        test.rewinds = 6;
        run_case(&test, "seq_len 100\nbatch 4\nseed 3\nsteps 30\nsource data narrow.list\n");
        assert_int_equal(test.rewinds, 0);
        assert_true(test.batches > 30);
        device_is_clean();
    }
}

struct threaded {
    struct device_case test;
    struct os_thread *thread;
    char text[400];
};

static void run_threaded(void *user)
{
    struct threaded *threaded = user;
    device_case_run(&threaded->test);
}

static void several_loaders_work_at_once(void **unused)
{
    (void)unused;
    enum { LOADERS = 4 };
    for (unsigned round = 0; is_next(round, cases / 10); round++) {
        struct threaded *all = calloc(LOADERS, sizeof *all);
        struct tokmap_run *runs[LOADERS];
        device_configure("seed=%u,delay=%u", round, round % 2 * 200);
        for (unsigned i = 0; i < LOADERS; i++) {
            device_case_random(&all[i].test, 5000 + round * LOADERS + i, "narrow.list", "wide.list", all[i].text);
            all[i].test.run = runs[i] = parse(all[i].text);
            /* All cases would share the default stream, so each gets a stream of its own. */
            all[i].test.streams += !all[i].test.streams;
        }
        for (unsigned i = 0; i < LOADERS; i++)
            assert_int_equal(os_thread_start(&all[i].thread, "loader", run_threaded, &all[i]), 0);
        for (unsigned i = 0; i < LOADERS; i++)
            os_thread_join(all[i].thread);
        for (unsigned i = 0; i < LOADERS; i++) {
            if (*all[i].test.failure)
                fail_msg("round %u, loader %u: %s\n%s", round, i, all[i].test.failure, all[i].text);
            tokmap_run_close(runs[i]);
        }
        free(all);
        device_is_clean();
    }
}

static void a_cursor_resumes_on_host_and_device(void **unused)
{
    (void)unused;
    const char *text = "seq_len 65\nbatch 6\nseed 9\nsteps 14\nsource data narrow.list\n";
    struct device_case first, second;
    char cursor[TOKMAP_CURSOR_TEXT];
    device_configure("seed=3,delay=100");
    device_case_whole(&first, 1);
    first.options.fields = 127;
    first.options.world = 1;
    first.options.rank = 0;
    first.options.rows = 2;
    first.options.threads = 1;
    for (uint64_t calls = 1; calls < 42; calls += 5) {
        second = first;
        first.limit = calls;
        run_case(&first, text);
        assert_int_equal(first.batches, calls);
        tokmap_cursor_print(&first.cursor, cursor);
        second.options.resume =
            cursor; /* resumes the loaders of the host and of the device, which must agree until the end */
        second.limit = UINT64_MAX;
        run_case(&second, text);
        assert_int_equal(second.batches, 42 - calls / 3 * 3); /* from the start of the step */
    }
}

static void the_requested_device_is_used(void **unused)
{
    (void)unused;
    const char *text = "seq_len 64\nbatch 4\nseed 2\nsteps 8\nsource data wide.list\n";
    struct device_case test;
    if (device_is_real())
        skip(); /* a real machine may have only one GPU */
    device_configure("devices=2,delay=50");
    device_case_whole(&test, 77);
    test.options.device = "cuda:1";
    device_makes_contexts(1);
    test.options.rank = 0;
    test.options.world = 1;
    test.streams = 2;
    run_case(&test, text);
    test.options.device = "cuda:0";
    run_case(&test, text);
}

/* Rows that are aligned only to their elements, with more pieces than a device has threads. */
static void a_large_batch_equals_that_of_the_host(void **unused)
{
    (void)unused;
    struct device_case test;
    device_configure("seed=5,delay=20");
    for (unsigned kind = 0; kind < 4; kind++) {
        device_case_whole(&test, 40 + kind);
        test.options.rank = 0;
        test.options.world = 1;
        test.options.rows = 0;
        test.options.fields = 127;
        test.ahead = 2;
        test.type = kind % 2 ? TOKMAP_ID_I64 : TOKMAP_ID_I32;
        run_case(&test, kind / 2 ? "seq_len 4095\nbatch 24\nseed 1\nsteps 3\nsource data narrow.list\n"
                                 : "seq_len 4096\nbatch 24\nseed 1\nsteps 3\nsource data wide.list\n");
        device_is_clean();
    }
}

/* ---- controlled lateness ---- */

struct opened {
    struct tokmap_run *run;
    struct tokmap_loader *loader;
    struct CUstream_st *stream;
    struct tokmap_out out;
    struct tokmap_batch batch;
};

static void open_one(struct opened *opened, const char *text, uint32_t threads, uint64_t ring_bytes)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_error error;
    *opened = (struct opened){.out = TOKMAP_OUT_INIT, .batch = TOKMAP_BATCH_INIT};
    opened->run = parse(text);
    options.device = "cuda:0";
    options.threads = threads;
    options.ring_bytes = ring_bytes;
    if (tokmap_loader_open(&opened->loader, opened->run, &options, &error) ||
        tokmap_cuda_stream_new("cuda:0", &opened->stream, &error) ||
        tokmap_cuda_memory_new("cuda:0", 64 * 1024, &opened->out.inputs, &error) ||
        tokmap_cuda_memory_new("cuda:0", 64 * 1024, &opened->out.targets, &error))
        fail_msg("%s", error.message);
}

static void close_loader(struct opened *opened)
{
    tokmap_loader_close(opened->loader);
    opened->loader = NULL;
}

static void close_rest(struct opened *opened)
{
    close_loader(opened);
    assert_int_equal(tokmap_cuda_stream_synchronize("cuda:0", opened->stream, NULL), TOKMAP_OK);
    tokmap_cuda_memory_free("cuda:0", opened->out.inputs);
    tokmap_cuda_memory_free("cuda:0", opened->out.targets);
    tokmap_cuda_stream_free("cuda:0", opened->stream);
    tokmap_run_close(opened->run);
}

static void take_next(struct opened *opened)
{
    struct tokmap_error error;
    if (tokmap_cuda_next(opened->loader, &opened->out, opened->stream, &opened->batch, &error))
        fail_msg("%s", error.message);
}

#define LONG_RUN "seq_len 128\nbatch 4\nseed 7\nsteps 400\nsource data narrow.list\n"

/* next() does not wait for the device: it gets all batches of the ring while its stream is held. (If it waited, the
 * time limit would end this test.) */
static void next_does_not_wait_for_the_device(void **unused)
{
    (void)unused;
    struct opened opened;
    if (device_is_real())
        skip();
    open_one(&opened, LONG_RUN, 1, 0);
    software_driver()->hold_stream((CUstream)opened.stream, 1);
    struct tokmap_stats stats = TOKMAP_STATS_INIT;
    assert_int_equal(tokmap_loader_stats(opened.loader, &stats), TOKMAP_OK);
    for (unsigned i = 0; i < stats.ring_slots; i++)
        take_next(&opened);
    assert_int_equal(tokmap_loader_stats(opened.loader, &stats), TOKMAP_OK);
    assert_int_equal(stats.batches, stats.ring_slots);
    software_driver()->hold_stream((CUstream)opened.stream, 0);
    close_rest(&opened);
}

/* While the whole device is held, every batch is still being copied when next() takes it, and the statistics say so. */
static void late_copies_are_counted(void **unused)
{
    (void)unused;
    struct opened opened;
    struct tokmap_stats stats = TOKMAP_STATS_INIT;
    if (device_is_real())
        skip();
    software_driver()->hold(1);
    open_one(&opened, LONG_RUN, 1, 0);
    assert_int_equal(tokmap_loader_stats(opened.loader, &stats), TOKMAP_OK);
    for (unsigned i = 0; i < stats.ring_slots; i++)
        take_next(&opened);
    assert_int_equal(tokmap_loader_stats(opened.loader, &stats), TOKMAP_OK);
    assert_int_equal(stats.late_copies, stats.ring_slots);
    software_driver()->hold(0);
    close_rest(&opened);
}

/* Each batch takes one copy, from pinned memory, and one launch. After the first batch nothing is allocated or created
 * but the two events of each slot. */
static void a_batch_is_one_copy_and_one_launch(void **unused)
{
    (void)unused;
    struct opened opened;
    struct cuda_software_counts before, after;
    struct tokmap_stats stats = TOKMAP_STATS_INIT;
    if (device_is_real())
        skip();
    for (uint32_t threads = 0; threads < 2; threads++) {
        open_one(&opened, LONG_RUN, threads, 0);
        software_driver()->counts(&before);
        assert_true(threads || !before.events); /* they are created at the slot's first use */
        take_next(&opened);
        software_driver()->counts(&before);
        for (unsigned i = 1; i < 400; i++)
            take_next(&opened);
        software_driver()->counts(&after);
        assert_int_equal(after.pageable_copies, before.pageable_copies);
        assert_int_equal(after.calls[ENTRY_cuLaunchKernel] - before.calls[ENTRY_cuLaunchKernel], 399);
        assert_true(after.calls[ENTRY_cuMemcpyHtoDAsync] <= 400);
        /* The context of the stream is checked in each call, because the handle may belong to another stream by now. */
        assert_int_equal(after.calls[ENTRY_cuStreamGetCtx] - before.calls[ENTRY_cuStreamGetCtx], 399);
        static const enum cuda_entry never[] = {
            ENTRY_cuMemAlloc,          ENTRY_cuMemHostRegister, ENTRY_cuMemHostAlloc,
            ENTRY_cuStreamCreate,      ENTRY_cuMemFree,         ENTRY_cuModuleLoadDataEx,
            ENTRY_cuStreamSynchronize, ENTRY_cuCtxSynchronize,  ENTRY_cuDevicePrimaryCtxRetain};
        for (unsigned i = 0; i < sizeof never / sizeof *never; i++)
            assert_int_equal(after.calls[never[i]], before.calls[never[i]]);
        assert_int_equal(tokmap_loader_stats(opened.loader, &stats), TOKMAP_OK);
        assert_int_equal(after.events, 2 * stats.ring_slots);
        assert_int_equal(after.blocking_events, stats.ring_slots); /* what the consumer's stream records is not one */
        assert_int_equal(after.calls[ENTRY_cuEventCreate], 2 * stats.ring_slots);
        assert_int_equal(tokmap_cuda_next(opened.loader, &opened.out, opened.stream, &opened.batch, NULL), TOKMAP_END);
        close_rest(&opened);
        software_driver_is_content();
        software_driver()->reset();
    }
}

static uint64_t all_calls(const struct cuda_software_counts *counts)
{
    uint64_t calls = 0;
    for (unsigned i = 0; i < CUDA_ENTRY_COUNT; i++)
        calls += counts->calls[i];
    return calls;
}

/* What a batch costs in calls of the driver. The producer sets its context and capture mode once, so a batch takes 6
 * calls on its thread: it asks whether the context exists (2), waits for the slot's last copy, makes the copy stream
 * wait for the slot's last expansion, copies, and records. next() asks whether the context exists (1), looks at the
 * thread's (1), sets the capture mode and restores it (2), asks about the stream (2) and the copy (1), waits for a copy
 * that is late (at most 1), launches, and records. */
static void a_batch_costs_few_calls_of_the_driver(void **unused)
{
    (void)unused;
    struct opened opened;
    struct cuda_software_counts before, after;
    struct CUctx_st *popped;
    CUcontext context;
    if (device_is_real())
        skip();
    assert_int_equal(software_driver()->cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(software_driver()->cuCtxPushCurrent(context), 0);
    for (uint64_t ring_bytes = 0; ring_bytes <= 8192; ring_bytes += 8192) {
        const unsigned batches = 300;
        open_one(&opened, LONG_RUN, 1, ring_bytes);
        struct tokmap_stats stats = TOKMAP_STATS_INIT;
        assert_int_equal(tokmap_loader_stats(opened.loader, &stats), TOKMAP_OK);
        for (unsigned i = 0; i < stats.ring_slots; i++)
            take_next(&opened);
        software_driver()->counts(&before);
        for (unsigned i = 0; i < batches; i++)
            take_next(&opened);
        software_driver()->counts(&after);
        /* The producer is ahead by at most the ring at either count. */
        const uint64_t produced = after.calls[ENTRY_cuMemcpyHtoDAsync] - before.calls[ENTRY_cuMemcpyHtoDAsync];
        const uint64_t late = after.calls[ENTRY_cuStreamWaitEvent] - before.calls[ENTRY_cuStreamWaitEvent];
        assert_true(produced <= batches + stats.ring_slots);
        if (all_calls(&after) - all_calls(&before) > 9 * batches + 5 * (produced + 1) + late)
            fail_msg("%u batches, of which %llu were copied, took %llu calls with %llu waits", batches,
                     (unsigned long long)produced, (unsigned long long)(all_calls(&after) - all_calls(&before)),
                     (unsigned long long)late);
        assert_int_equal(after.calls[ENTRY_cuCtxGetCurrent] - before.calls[ENTRY_cuCtxGetCurrent], batches);
        assert_int_equal(after.calls[ENTRY_cuThreadExchangeStreamCaptureMode] -
                             before.calls[ENTRY_cuThreadExchangeStreamCaptureMode],
                         2 * batches);
        static const enum cuda_entry never[] = {ENTRY_cuCtxPushCurrent, ENTRY_cuCtxPopCurrent, ENTRY_cuCtxSetCurrent};
        for (unsigned i = 0; i < sizeof never / sizeof *never; i++)
            assert_int_equal(after.calls[never[i]], before.calls[never[i]]);
        close_rest(&opened);
        software_driver_is_content();
        software_driver()->reset();
    }
    assert_int_equal(software_driver()->cuCtxPopCurrent(&popped), 0);
    assert_int_equal(software_driver()->cuDevicePrimaryCtxRelease(0), 0);
}

/* Waits until the ring is full, except for the slots that the test holds. */
static void await_full(const struct opened *opened, uint64_t held)
{
    struct tokmap_stats stats = TOKMAP_STATS_INIT;
    for (;;) {
        assert_int_equal(tokmap_loader_stats(opened->loader, &stats), TOKMAP_OK);
        if (stats.ring_ready + held >= stats.ring_slots)
            return;
        os_sleep_ns(20000);
    }
}

/* The producer does not fill a slot that the consumer has not released. The driver counts the filled slots: each is one
 * copy. */
static void no_slot_is_filled_too_early(void **unused)
{
    (void)unused;
    struct opened opened;
    struct tokmap_stats stats = TOKMAP_STATS_INIT;
    struct cuda_software_counts counts;
    if (device_is_real())
        skip();
    open_one(&opened, LONG_RUN, 1, 8192);
    assert_int_equal(tokmap_loader_stats(opened.loader, &stats), TOKMAP_OK);
    for (uint64_t released = 0; released + stats.ring_slots < 400; released++) {
        take_next(&opened); /* releases the previous slot */
        await_full(&opened, 1);
        software_driver()->counts(&counts);
        if (counts.calls[ENTRY_cuMemcpyHtoDAsync] > released + stats.ring_slots)
            fail_msg("the producer filled a slot too early: %llu slots, %llu released, %llu copies",
                     (unsigned long long)stats.ring_slots, (unsigned long long)released,
                     (unsigned long long)counts.calls[ENTRY_cuMemcpyHtoDAsync]);
    }
    close_rest(&opened);
}

/* ---- wrong arguments: each is a status, and the next call delivers the same rows ---- */

static void refused(struct opened *opened, const struct tokmap_out *out, enum tokmap_status expected, const char *words)
{
    struct tokmap_error error;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    enum tokmap_status status = tokmap_cuda_next(opened->loader, out, opened->stream, &batch, &error);
    if (status != expected || !strstr(error.message, words))
        fail_msg("%s: %s", tokmap_status_name(status), status ? error.message : "");
    assert_int_equal(error.status, expected);
}

static void wrong_outputs_are_refused_and_cost_nothing(void **unused)
{
    (void)unused;
    struct opened opened;
    int32_t *ordinary = malloc(64 * 1024);
    for (uint32_t threads = 0; threads < 2; threads++) {
        open_one(&opened, LONG_RUN, threads, 0);
        struct tokmap_out out = opened.out;
        for (uint64_t row = 0; row < 3; row++) {
            out = opened.out;
            out.inputs = ordinary;
            refused(&opened, &out, TOKMAP_ERROR_ARGUMENT, "inputs is ordinary host memory");
            out = opened.out;
            out.targets = (char *)out.targets + 2;
            refused(&opened, &out, TOKMAP_ERROR_ARGUMENT, "targets has an address");
            out = opened.out;
            out.targets = NULL;
            refused(&opened, &out, TOKMAP_ERROR_ARGUMENT, "targets is NULL");
            take_next(&opened);
            assert_int_equal(opened.batch.step, row);
        }
        close_rest(&opened);
    }
    free(ordinary);
}

static void a_missing_device_is_a_status(void **unused)
{
    (void)unused;
    static const struct {
        const char *device;
        enum tokmap_status status;
    } wrong[] = {{"cuda:99", TOKMAP_ERROR_NO_DEVICE}, {"cuda:", TOKMAP_ERROR_ARGUMENT},
                 {"cuda:-1", TOKMAP_ERROR_ARGUMENT},  {"gpu", TOKMAP_ERROR_ARGUMENT},
                 {"cuda:0x", TOKMAP_ERROR_ARGUMENT},  {"", TOKMAP_ERROR_ARGUMENT}};
    /* The run has more tokens than cu_seqlens can count, but the loader must check the device first. */
    struct tokmap_run *run = parse("seq_len 65536\nbatch 65536\nsource data synthetic:vocab=1000\n");
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
        struct tokmap_loader *loader;
        struct tokmap_error error;
        options.device = wrong[i].device;
        options.fields |= TOKMAP_CU_SEQLENS;
        assert_int_equal(tokmap_loader_open(&loader, run, &options, &error), wrong[i].status);
        assert_null(loader);
        assert_true(strlen(error.message) > 20);
    }
    tokmap_run_close(run);
}

/* ---- graphs ---- */

/* The producer works while the caller captures a graph, in the mode that forbids the most calls to other threads. (The
 * device is held until the capture has begun, so that the producer still has most of the ring to fill.) */
static void a_capture_is_not_disturbed(void **unused)
{
    (void)unused;
    struct opened opened;
    struct tokmap_stats stats = TOKMAP_STATS_INIT;
    CUcontext context;
    CUgraph graph;
    int status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (device_is_real())
        skip();
    const struct software_driver *driver = software_driver();
    driver->hold(1);
    open_one(&opened, LONG_RUN, 1, 0);
    assert_int_equal(driver->cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(driver->cuCtxPushCurrent(context), 0);
    for (unsigned i = 0; i < 20; i++)
        take_next(&opened);
    assert_int_equal(driver->cuStreamBeginCapture((CUstream)opened.stream, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    driver->hold(0);
    do { /* until the producer has filled the ring again, except for the slot that the test holds */
        assert_int_equal(tokmap_loader_stats(opened.loader, &stats), TOKMAP_OK);
        assert_int_equal(driver->cuStreamIsCapturing((CUstream)opened.stream, &status), 0);
    } while (stats.ring_ready + 1 < stats.ring_slots && status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_int_equal(driver->cuStreamEndCapture((CUstream)opened.stream, &graph), 0);
    take_next(&opened);
    assert_int_equal(driver->cuCtxPopCurrent(NULL), 0);
    assert_int_equal(driver->cuDevicePrimaryCtxRelease(0), 0);
    close_rest(&opened);
}

static void a_capturing_stream_is_refused(void **unused)
{
    (void)unused;
    struct opened opened;
    CUcontext context;
    CUgraph graph;
    if (device_is_real())
        skip();
    const struct software_driver *driver = software_driver();
    open_one(&opened, LONG_RUN, 1, 0);
    assert_int_equal(driver->cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(driver->cuCtxPushCurrent(context), 0);
    for (uint64_t turn = 0; turn < 40; turn++) {
        void *const own = opened.stream, *const streams[] = {own, (void *)2}; /* 2: CU_STREAM_PER_THREAD */
        for (int i = 0; i < 2; i++) {
            opened.stream = streams[i];
            assert_int_equal(driver->cuStreamBeginCapture((CUstream)opened.stream, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
            refused(&opened, &opened.out, TOKMAP_ERROR_ARGUMENT, "captur");
            assert_int_equal(driver->cuStreamEndCapture((CUstream)opened.stream, &graph), 0);
        }
        opened.stream = own;
        take_next(&opened);
        assert_int_equal(opened.batch.step, turn);
    }
    assert_int_equal(driver->cuCtxPopCurrent(NULL), 0);
    assert_int_equal(driver->cuDevicePrimaryCtxRelease(0), 0);
    close_rest(&opened);
}

/* ---- closing ---- */

static void closing_at_any_moment(void **unused)
{
    (void)unused;
    for (unsigned turn = 0; is_next(turn, cases); turn++) {
        struct opened opened;
        device_configure("seed=%u,delay=%u", turn, turn % 4 * 150);
        open_one(&opened, LONG_RUN, turn % 5 != 0, turn % 3 ? 0 : 8192);
        for (unsigned calls = turn % 17; calls; calls--)
            take_next(&opened);
        if (turn % 7 == 0)
            os_sleep_ns(turn * 10000);
        close_loader(&opened); /* while work on the consumer's stream is under way */
        close_rest(&opened);
        device_is_clean();
    }
}

/* Copies of batches that nobody has taken, and expansions, are under way, and only closing waits for them. */
static void closing_waits_for_what_is_under_way(void **unused)
{
    (void)unused;
    if (device_is_real())
        skip();
    for (unsigned kind = 0; kind < 8; kind++) {
        struct opened opened;
        device_configure("lazy%s", kind & 1 ? ",fail=cuModuleLoadDataEx:1+:222" : "");
        open_one(&opened, LONG_RUN, kind >> 1 & 1, 0);
        for (unsigned calls = kind & 4 ? 2 : 0; calls; calls--)
            take_next(&opened);
        if (kind & 2)
            await_full(&opened, kind & 4 ? 1 : 0);
        close_loader(&opened);
        close_rest(&opened);
        device_is_clean();
    }
}

/* An optional argument is the pattern of the tests to run. */
int main(int argc, char **argv)
{
    char why[800];
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    if (!device_begin(why)) {
        (void)printf("%s\n", why);
        return 77;
    }
#define TEST(name) cmocka_unit_test_setup_teardown(name, NULL, clean)
    const struct CMUnitTest tests[] = {
        TEST(every_batch_equals_that_of_the_host),
        TEST(without_the_kernel_the_host_expands),
        TEST(the_host_waits_for_a_slow_device),
        TEST(without_a_field_nothing_is_expanded),
        TEST(a_device_may_be_as_late_as_the_calls_allow),
        TEST(rewinding_leaves_enqueued_work_intact),
        TEST(several_loaders_work_at_once),
        TEST(a_cursor_resumes_on_host_and_device),
        TEST(the_requested_device_is_used),
        TEST(a_large_batch_equals_that_of_the_host),
        TEST(next_does_not_wait_for_the_device),
        TEST(late_copies_are_counted),
        TEST(a_batch_is_one_copy_and_one_launch),
        TEST(a_batch_costs_few_calls_of_the_driver),
        TEST(no_slot_is_filled_too_early),
        TEST(wrong_outputs_are_refused_and_cost_nothing),
        TEST(a_missing_device_is_a_status),
        TEST(a_capture_is_not_disturbed),
        TEST(a_capturing_stream_is_refused),
        TEST(closing_at_any_moment),
        TEST(closing_waits_for_what_is_under_way),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
