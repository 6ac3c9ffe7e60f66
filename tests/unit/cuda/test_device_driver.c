/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * What a driver does around a loader: modules that loaders share, machine code that the driver refuses, drivers that
 * load a kernel late or lack newer functions, streams of green contexts, captures that reach the legacy default stream,
 * a device that is reset or a driver that has ended while a loader is open, children where the kernel does not clear
 * memory for them, and the pages of the ring. All on the emulated driver, as one for CUDA 13.0 and as one for CUDA 11.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/cuda_kernel.h"
#include "platform/os.h"
#include "staging/expand_arguments.h"
#include "support/made.h"
#include "support/run_help.h"
#include "support/scratch.h"
#include "support/software_driver.h"
#include "tokmap/cuda.h"

#define SEQ_LEN 100
#define BATCH 4

static char folder[512];
static struct made made;
static struct tokmap_run *run;
static const struct software_driver *driver;
static struct cuda_driver *table; /* the library's own */

/* This program's own madvise() takes the place of libc's. It can refuse what old kernels and sandboxes refuse, and it
 * remembers for what memory huge pages were asked. */
static int refuses_wipe;
static struct {
    const void *address;
    size_t bytes;
} advised; /* by the last call that asked for huge pages */
int madvise(void *address, size_t bytes, int advice)
{
    if (advice == MADV_HUGEPAGE) {
        advised.address = address;
        advised.bytes = bytes;
    }
    if (refuses_wipe && advice == MADV_WIPEONFORK) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_madvise, address, bytes, advice);
}

static void configure(const char *words)
{
    assert_true(driver->configure(words));
}

static int setup(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {9000};
    struct simple_run options = SIMPLE_RUN_INIT;
    const struct cuda_driver *found;
    driver = software_driver();
    setenv("TOKMAP_CUDA_DRIVER", driver->path, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    configure("version=13000"); /* the library asks for functions when it opens the driver */
    if (cuda_driver_open(&found, NULL))
        return -1;
    table = (struct cuda_driver *)(uintptr_t)found;
    scratch_make(folder);
    made_new(&made, folder, "data", 2, 50257, sizes, 1);
    options.data = made.name;
    options.seq_len = SEQ_LEN;
    options.lookahead = 1;
    options.batch = BATCH;
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

/* After each test: nothing is left in the driver, and it has found no violation. */
static int finish(void **unused)
{
    (void)unused;
    refuses_wipe = 0;
    configure("");
    software_driver_is_content();
    software_driver_is_empty();
    return 0;
}

static struct cuda_software_counts counts_now(void)
{
    struct cuda_software_counts counts;
    driver->counts(&counts);
    return counts;
}

static struct tokmap_loader *open_loader(uint32_t threads)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_loader *loader;
    struct tokmap_error error;
    options.threads = threads;
    options.device = "cuda:0";
    options.ring_bytes = 9000;
    if (tokmap_loader_open(&loader, run, &options, &error))
        fail_msg("%s", error.message);
    return loader;
}

static void kernel_is(const struct tokmap_loader *loader, int kernel, const char *words)
{
    struct tokmap_loader_device what = TOKMAP_LOADER_DEVICE_INIT;
    assert_int_equal(tokmap_loader_device(loader, &what), TOKMAP_OK);
    if (what.kernel != kernel || !strstr(what.reason, words))
        fail_msg("kernel %d, reason \"%s\"", what.kernel, what.reason);
}

/* Outputs on the device, and a stream. */
struct outputs {
    struct tokmap_out out;
    struct CUstream_st *stream;
};

static void outputs_new(struct outputs *outputs)
{
    outputs->out = (struct tokmap_out)TOKMAP_OUT_INIT;
    assert_int_equal(tokmap_cuda_memory_new("cuda:0", BATCH * SEQ_LEN * 4, &outputs->out.inputs, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_cuda_memory_new("cuda:0", BATCH * SEQ_LEN * 4, &outputs->out.targets, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_cuda_stream_new("cuda:0", &outputs->stream, NULL), TOKMAP_OK);
}

static void outputs_free(struct outputs *outputs)
{
    tokmap_cuda_memory_free("cuda:0", outputs->out.inputs);
    tokmap_cuda_memory_free("cuda:0", outputs->out.targets);
    tokmap_cuda_stream_free("cuda:0", outputs->stream);
}

/* Takes the next batch on a stream and compares the inputs, read on the same stream, with what the rows are. */
static void take(struct tokmap_loader *loader, const struct outputs *outputs, struct CUstream_st *stream, uint64_t step)
{
    static int32_t inputs[BATCH * SEQ_LEN];
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct tokmap_error error;
    if (tokmap_cuda_next(loader, &outputs->out, stream, &batch, &error))
        fail_msg("%s", error.message);
    assert_int_equal(batch.step, step);
    assert_int_equal(tokmap_cuda_memory_read("cuda:0", inputs, outputs->out.inputs, sizeof inputs, stream, NULL),
                     TOKMAP_OK);
    for (uint64_t i = 0; i < BATCH * SEQ_LEN; i++)
        assert_int_equal(inputs[i], made_token(&made, batch.places[i / SEQ_LEN].first_token + i % SEQ_LEN));
}

static void refused(struct tokmap_loader *loader, const struct outputs *outputs, struct CUstream_st *stream,
                    const char *words)
{
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct tokmap_error error;
    assert_int_equal(tokmap_cuda_next(loader, &outputs->out, stream, &batch, &error), TOKMAP_ERROR_ARGUMENT);
    if (!strstr(error.message, words))
        fail_msg("the message \"%s\" does not contain \"%s\"", error.message, words);
}

/* ---- modules ---- */

/* All loaders of a context use one module, which is unloaded with the last of them. Machine code is loaded as it is. */
static void loaders_share_one_module(void **unused)
{
    (void)unused;
    struct tokmap_loader *loaders[4];
    struct outputs outputs;
    driver->reset();
    for (unsigned i = 0; i < 4; i++)
        loaders[i] = open_loader(i % 2);
    assert_int_equal(counts_now().modules, 1);
    assert_int_equal(counts_now().modules_loaded, 1);
    assert_int_equal(counts_now().modules_compiled, 0);
    outputs_new(&outputs);
    for (unsigned i = 0; i < 4; i++) {
        kernel_is(loaders[i], 1, "");
        take(loaders[i], &outputs, outputs.stream, 0);
        tokmap_loader_close(loaders[i]);
        assert_int_equal(counts_now().modules, i < 3);
    }
    /* Outputs keep the context, but a module without a user is not kept. */
    struct tokmap_loader *again = open_loader(1);
    assert_int_equal(counts_now().modules_loaded, 2);
    /* A move opens a second loader, and closes the first. */
    assert_int_equal(tokmap_loader_repartition(again, 0, 2, NULL), TOKMAP_OK);
    assert_int_equal(counts_now().modules_loaded, 2);
    tokmap_loader_close(again);
    outputs_free(&outputs);
}

static void devices_have_modules_of_their_own(void **unused)
{
    (void)unused;
    char reason[CUDA_KERNEL_REASON];
    const struct cuda_kernel *kernels[4];
    struct cuda_device devices[2];
    struct cuda_entered entered;
    configure("devices=2");
    driver->reset();
    for (unsigned i = 0; i < 4; i++) {
        if (i < 2)
            assert_int_equal(cuda_device_open(&devices[i], i ? "cuda:1" : "cuda:0", NULL), TOKMAP_OK);
        assert_int_equal(cuda_enter(&devices[i % 2], &entered), 0);
        kernels[i] = cuda_kernel_take(&devices[i % 2], reason);
        assert_non_null(kernels[i]);
        cuda_leave(&devices[i % 2], &entered);
    }
    assert_ptr_equal(kernels[0], kernels[2]);
    assert_ptr_equal(kernels[1], kernels[3]);
    assert_ptr_not_equal(kernels[0], kernels[1]);
    assert_int_equal(counts_now().modules_loaded, 2);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(cuda_enter(&devices[i % 2], &entered), 0);
        cuda_kernel_release(kernels[i], false);
        cuda_leave(&devices[i % 2], &entered);
    }
    assert_int_equal(counts_now().modules, 0);
    cuda_device_close(&devices[0]);
    cuda_device_close(&devices[1]);
}

/* The machine code is for capability 8, 9, and 10. Other GPUs, and drivers that refuse it, compile the PTX. */
static void the_driver_compiles_only_where_it_must(void **unused)
{
    (void)unused;
    static const struct {
        const char *words;
        uint64_t compiled;
    } cases[] = {{"capability=80", 0},
                 {"capability=86", 0},
                 {"capability=89", 0},
                 {"capability=90", 0},
                 {"capability=100", 0},
                 {"capability=103", 0},
                 {"capability=70", 1},
                 {"capability=75", 1},
                 {"capability=120", 1},
                 {"fail=cuModuleLoadDataEx:1:209", 1},
                 {"fail=cuModuleGetFunction:1:500", 1},
                 {"fail=cuFuncLoad:1:209", 1}};
    struct outputs outputs;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        configure(cases[i].words);
        driver->reset();
        struct tokmap_loader *loader = open_loader(1);
        kernel_is(loader, 1, "");
        if (counts_now().modules_compiled != cases[i].compiled || counts_now().modules != 1)
            fail_msg("%s: %d modules were compiled", cases[i].words, (int)counts_now().modules_compiled);
        configure("");
        outputs_new(&outputs);
        take(loader, &outputs, outputs.stream, 0);
        tokmap_loader_close(loader);
        outputs_free(&outputs);
        software_driver_is_empty();
    }
    configure("fail=cuModuleLoadDataEx:1+:222");
    struct tokmap_loader *loader = open_loader(1);
    kernel_is(loader, 0, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
    configure("");
    outputs_new(&outputs);
    take(loader, &outputs, outputs.stream, 0);
    tokmap_loader_close(loader);
    outputs_free(&outputs);
}

/* A driver that loads a kernel at its first launch does so while the loader is opened, with and without cuFuncLoad, and
 * not in the first next(). */
static void the_first_batch_loads_nothing(void **unused)
{
    (void)unused;
    int (*const func_load)(struct CUfunc_st *) = table->func_load;
    assert_non_null(func_load);
    for (unsigned i = 0; i < 2; i++) {
        struct outputs outputs;
        outputs_new(&outputs);
        table->func_load = i ? NULL : func_load;
        configure("version=12030"); /* the first with lazy loading and without cuFuncLoad */
        driver->reset();
        struct tokmap_loader *loader = open_loader(0);
        assert_int_equal(counts_now().functions_loaded, 1);
        const uint64_t at_opening = counts_now().late_loads;
        take(loader, &outputs, outputs.stream, 0);
        take(loader, &outputs, outputs.stream, 1);
        assert_int_equal(counts_now().functions_loaded, 1);
        assert_int_equal(counts_now().late_loads, at_opening);
        assert_int_equal(counts_now().launches, 2 + i);
        tokmap_loader_close(loader);
        outputs_free(&outputs);
    }
    table->func_load = func_load;
}

/* The driver says how many blocks fit on the device. */
static void a_launch_fills_the_device(void **unused)
{
    (void)unused;
    static const struct {
        const char *words;
        uint32_t blocks;
        bool unknown;
    } cases[] = {{"registers=48", 5, false},
                 {"registers=40", 6, false},
                 {"registers=64", 4, false},
                 {"registers=40", EXPAND_BLOCKS_HELD, true},
                 {"fail=cuOccupancyMaxActiveBlocksPerMultiprocessor:1", EXPAND_BLOCKS_HELD, false}};
    __typeof__(table->max_active_blocks) known = table->max_active_blocks;
    assert_non_null(known);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char reason[CUDA_KERNEL_REASON];
        struct cuda_device device;
        struct cuda_entered entered;
        configure(cases[i].words);
        table->max_active_blocks = cases[i].unknown ? NULL : known;
        assert_int_equal(cuda_device_open(&device, "cuda:0", NULL), TOKMAP_OK);
        assert_int_equal(cuda_enter(&device, &entered), 0);
        const struct cuda_kernel *kernel = cuda_kernel_take(&device, reason);
        assert_non_null(kernel);
        assert_int_equal(kernel->held, 132 * cases[i].blocks);
        cuda_kernel_release(kernel, false);
        cuda_leave(&device, &entered);
        cuda_device_close(&device);
        table->max_active_blocks = known;
    }
}

/* ---- streams ---- */

static void push_primary(CUcontext *context)
{
    assert_int_equal(driver->cuDevicePrimaryCtxRetain(context, 0), 0);
    assert_int_equal(driver->cuCtxPushCurrent(*context), 0);
}

static void pop_primary(void)
{
    CUcontext popped;
    assert_int_equal(driver->cuCtxPopCurrent(&popped), 0);
    assert_int_equal(driver->cuDevicePrimaryCtxRelease(0), 0);
}

/* A stream of a green context is one of the primary context. A driver that cannot say so leads to a refusal. */
static void streams_of_green_contexts_are_accepted(void **unused)
{
    (void)unused;
    struct outputs outputs;
    CUcontext context;
    CUgreenCtx green;
    CUstream stream;
    CUdevResource resource;
    CUdevResourceDesc description;
    __typeof__(table->stream_get_both_ctx) both = table->stream_get_both_ctx;
    configure("version=13000");
    assert_non_null(both);
    push_primary(&context);
    assert_int_equal(driver->cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM), 0);
    assert_int_equal(driver->cuDevResourceGenerateDesc(&description, &resource, 1), 0);
    assert_int_equal(driver->cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM), 0);
    assert_int_equal(driver->cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0), 0);
    outputs_new(&outputs);
    struct tokmap_loader *loader = open_loader(1);
    for (uint64_t step = 0; step < 5; step++)
        take(loader, &outputs, step % 2 ? outputs.stream : stream, step);
    table->stream_get_both_ctx = NULL;
    refused(loader, &outputs, stream, "primary context");
    table->stream_get_both_ctx = both;
    take(loader, &outputs, stream, 5);
    tokmap_loader_close(loader);
    outputs_free(&outputs);
    assert_int_equal(driver->cuStreamDestroy(stream), 0);
    assert_int_equal(driver->cuGreenCtxDestroy(green), 0);
    pop_primary();
}

/* While a blocking stream captures, work on the legacy default stream would invalidate the capture. It is refused
 * before anything is enqueued, the capture continues, and no batch is lost. */
static void a_capture_keeps_off_the_legacy_stream(void **unused)
{
    (void)unused;
    static struct CUstream_st *const legacy[] = {NULL, (struct CUstream_st *)1};
    struct outputs outputs;
    CUcontext context;
    CUstream blocking;
    CUgraph graph;
    push_primary(&context);
    outputs_new(&outputs);
    assert_int_equal(driver->cuStreamCreate(&blocking, CU_STREAM_DEFAULT), 0);
    struct tokmap_loader *loader = open_loader(1);
    for (uint64_t i = 0; i < 4; i++) {
        const int mode = i < 2 ? CU_STREAM_CAPTURE_MODE_GLOBAL : CU_STREAM_CAPTURE_MODE_RELAXED;
        assert_int_equal(driver->cuStreamBeginCapture(blocking, mode), 0);
        const uint64_t before = counts_now().calls[ENTRY_cuLaunchKernel];
        refused(loader, &outputs, legacy[i % 2], "capturing a graph");
        assert_int_equal(counts_now().calls[ENTRY_cuLaunchKernel], before);
        assert_int_equal(driver->cuStreamEndCapture(blocking, &graph), 0);
        take(loader, &outputs, legacy[i % 2], i);
    }
    tokmap_loader_close(loader);
    outputs_free(&outputs);
    assert_int_equal(driver->cuStreamDestroy(blocking), 0);
    pop_primary();
}

/* ---- ends ---- */

/* Waits until the producer has filled the ring, so it makes no call of the driver. */
static void await_full(const struct tokmap_loader *loader)
{
    struct tokmap_stats stats = TOKMAP_STATS_INIT;
    for (unsigned naps = 0;; naps++) {
        assert_int_equal(tokmap_loader_stats(loader, &stats), TOKMAP_OK);
        if (stats.ring_ready >= stats.ring_slots)
            return;
        if (naps > 100000)
            fail_msg("the ring is not full after 10 s: %d of %d slots", (int)stats.ring_ready, (int)stats.ring_slots);
        os_sleep_ns(100000);
    }
}

static uint64_t calls_besides(const struct cuda_software_counts *counts)
{
    static const enum cuda_entry harmless[] = {ENTRY_cuCtxGetId, ENTRY_cuDevicePrimaryCtxRelease};
    uint64_t calls = 0;
    for (unsigned i = 0; i < CUDA_ENTRY_COUNT; i++)
        calls += counts->calls[i];
    for (unsigned i = 0; i < sizeof harmless / sizeof *harmless; i++)
        calls -= counts->calls[harmless[i]];
    return calls;
}

/* Closing after a reset asks whether the context is gone and ends its use. All handles dangle, so none is used, also if
 * something has made the context again, with the same handle. */
static void a_loader_survives_a_reset(void **unused)
{
    (void)unused;
    for (unsigned i = 0; i < 8; i++) {
        CUcontext again = NULL;
        if (i & 2)
            configure("fail=cuMemHostRegister:1+:801"); /* the driver allocates the slots */
        struct tokmap_loader *loader = open_loader(i & 1);
        configure("");
        if (i & 1)
            await_full(loader);
        assert_int_equal(driver->cuDevicePrimaryCtxReset(0), 0);
        if (i & 4)
            assert_int_equal(driver->cuDevicePrimaryCtxRetain(&again, 0), 0);
        driver->reset();
        tokmap_loader_close(loader);
        const struct cuda_software_counts counts = counts_now();
        assert_int_equal(calls_besides(&counts), 0);
        if (again)
            assert_int_equal(driver->cuDevicePrimaryCtxRelease(0), 0);
        software_driver_is_content();
        software_driver_is_empty();
        /* The next loader works, with a module of its own. */
        struct outputs outputs;
        outputs_new(&outputs);
        loader = open_loader(1);
        take(loader, &outputs, outputs.stream, 0);
        tokmap_loader_close(loader);
        outputs_free(&outputs);
        software_driver_is_content();
        software_driver_is_empty();
    }
}

/* What a reset has freed is not freed again, also if the same address is somebody else's by then. */
static void only_what_still_exists_is_freed(void **unused)
{
    (void)unused;
    for (unsigned i = 0; i < 4; i++) {
        void *memory, *ours = NULL;
        struct CUstream_st *stream;
        CUcontext context = NULL;
        CUdeviceptr theirs = 0;
        configure("reuse");
        assert_int_equal(tokmap_cuda_memory_new("cuda:0", 5000, &memory, NULL), TOKMAP_OK);
        assert_int_equal(tokmap_cuda_stream_new("cuda:0", &stream, NULL), TOKMAP_OK);
        assert_int_equal(driver->cuDevicePrimaryCtxReset(0), 0);
        if (i & 1) { /* another library uses the device again */
            push_primary(&context);
            assert_int_equal(driver->cuMemAlloc(&theirs, 5000), 0);
            assert_int_equal(theirs, (uintptr_t)memory);
        } else if (i & 2) { /* this one does */
            assert_int_equal(tokmap_cuda_memory_new("cuda:0", 5000, &ours, NULL), TOKMAP_OK);
            assert_ptr_equal(ours, memory);
        }
        driver->reset();
        tokmap_cuda_stream_free("cuda:0", stream);
        tokmap_cuda_memory_free("cuda:0", memory);
        assert_int_equal(counts_now().calls[ENTRY_cuMemFree], 0);
        assert_int_equal(counts_now().calls[ENTRY_cuStreamDestroy], 0);
        assert_int_equal(counts_now().contexts_made, 0);
        tokmap_cuda_memory_free("cuda:0", ours);
        assert_int_equal(counts_now().calls[ENTRY_cuMemFree], ours != NULL);
        if (context) {
            assert_int_equal(driver->cuMemFree(theirs), 0);
            pop_primary();
        }
        software_driver_is_content();
        software_driver_is_empty();
    }
}

/* At the end of the process the driver can be gone before the loader is closed. */
static void a_loader_survives_the_driver(void **unused)
{
    (void)unused;
    CUcontext context;
    push_primary(&context);
    struct tokmap_loader *loader = open_loader(1);
    await_full(loader);
    assert_int_equal(driver->cuCtxSynchronize(), 0); /* a driver that is gone has ended what the device did */
    configure("fail=cuCtxGetId:1+:4");
    driver->reset();
    tokmap_loader_close(loader);
    const struct cuda_software_counts counts = counts_now();
    assert_int_equal(calls_besides(&counts), 0);
    assert_int_equal(driver->cuDevicePrimaryCtxReset(0), 0); /* what the end of the driver does, too */
    pop_primary();
}

static bool is_mapped(const void *address)
{
    const uintptr_t page = os_page_bytes();
    return !msync((void *)((uintptr_t)address & ~(page - 1)), page, MS_ASYNC) || errno != ENOMEM;
}

/* A child gets a status and can close the loader of its parent, whether or not the kernel can clear memory in it. It
 * leaves the pinned memory where it is. */
static void a_child_is_recognized_without_help_of_the_kernel(void **unused)
{
    (void)unused;
    for (unsigned i = 0; i < 4; i++) {
        struct outputs outputs;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        refuses_wipe = i < 2;
        outputs_new(&outputs);
        struct tokmap_loader *loader = open_loader(i & 1);
        assert_int_equal(tokmap_cuda_next(loader, &outputs.out, outputs.stream, &batch, NULL), TOKMAP_OK);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (!child) {
            struct tokmap_error error;
            const void *row = batch.rows[0];
            const bool before = is_mapped(row);
            (void)alarm(20); /* joining a thread that does not exist takes forever */
            int wrong = tokmap_cuda_next(loader, &outputs.out, outputs.stream, &batch, &error) != TOKMAP_ERROR_ARGUMENT;
            tokmap_loader_close(loader);
            wrong += is_mapped(row) != before || before != (i >= 2);
            _exit(wrong);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        take(loader, &outputs, outputs.stream, 1);
        tokmap_loader_close(loader);
        outputs_free(&outputs);
    }
}

/* ---- older drivers ---- */

/* Copies the library of the driver. In the copy the symbol of a function has another name, so it is not found. */
static void copy_without(const char *into, const char *const names[2])
{
    size_t bytes;
    char *library = file_read(driver->path, &bytes);
    for (size_t i = 0; i < 2 && names[i]; i++) {
        const size_t length = strlen(names[i]) + 1;
        char *at = library;
        while ((at = memmem(at, bytes - (size_t)(at - library), names[i], length)))
            *at = 'x';
    }
    file_write(into, library, bytes);
    free(library);
}

/* Drivers for CUDA 11.3 to 11.8 have only the first cuGetProcAddress(), and those before none. Such a driver is a
 * library of its own here, because its functions are found once. Each loader has its own module. */
static void older_drivers_deliver(void **unused)
{
    (void)unused;
    static const struct {
        int version;
        const char *words, *hidden[2];
    } cases[] = {{11080, "version=11080", {"cuGetProcAddress_v2", NULL}},
                 {11020, "version=11020", {"cuGetProcAddress_v2", "cuGetProcAddress"}}};
    for (size_t i = 0; i < 2; i++) {
        char path[600];
        struct tokmap_cuda_info info = TOKMAP_CUDA_INFO_INIT;
        struct tokmap_loader *loaders[2];
        struct outputs outputs;
        uint64_t (*count)(const char *) = NULL;
        (void)snprintf(path, sizeof path, "%s/libcuda-%d.so.1", folder, cases[i].version);
        copy_without(path, cases[i].hidden);
        setenv("TOKMAP_CUDA_SOFTWARE", cases[i].words, 1);
        setenv("TOKMAP_CUDA_DRIVER", path, 1);
        assert_int_equal(tokmap_cuda_probe(&info, NULL), TOKMAP_OK);
        assert_int_equal(info.driver_version, cases[i].version);
        outputs_new(&outputs);
        for (uint32_t threads = 0; threads < 2; threads++) {
            loaders[threads] = open_loader(threads);
            kernel_is(loaders[threads], 1, "");
        }
        for (uint64_t step = 0; step < 6; step++)
            take(loaders[step % 2], &outputs, outputs.stream, step / 2);
        void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD), *found = dlsym(library, "cuda_software_count");
        memcpy(&count, &found, sizeof count);
        assert_int_equal(count("modules_loaded"), 2);
        assert_int_equal(count("late_loads"), 0);
        assert_int_equal(count("cuCtxGetId"), 0);
        tokmap_loader_close(loaders[0]);
        take(loaders[1], &outputs, outputs.stream, 3);
        tokmap_loader_close(loaders[1]);
        outputs_free(&outputs);
        assert_int_equal(count("violations"), 0);
        assert_int_equal(count("cuStreamDestroy"), count("streams_created"));
        assert_int_equal(count("cuModuleUnload"), 2);
        assert_int_equal(count("cuDevicePrimaryCtxRelease"), count("cuDevicePrimaryCtxRetain"));
        setenv("TOKMAP_CUDA_DRIVER", driver->path, 1);
        unsetenv("TOKMAP_CUDA_SOFTWARE");
        assert_int_equal(dlclose(library), 0);
    }
}

/* ---- what the device is asked ---- */

static void a_loader_reports_coherent_memory(void **unused)
{
    (void)unused;
    static const struct {
        const char *words;
        int coherent;
    } cases[] = {{"", 0}, {"pageable", 0}, {"pageable,host_tables", 1}, {"fail=cuDeviceGetAttribute:1+:1", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tokmap_loader_device what = TOKMAP_LOADER_DEVICE_INIT;
        configure(cases[i].words);
        struct tokmap_loader *loader = open_loader(1);
        assert_int_equal(tokmap_loader_device(loader, &what), TOKMAP_OK);
        assert_int_equal(what.coherent, cases[i].coherent);
        tokmap_loader_close(loader);
    }
}

/* Where the driver does not know the device's node, it is looked for by the device's place on the bus. */
static void an_unknown_node_is_looked_for(void **unused)
{
    (void)unused;
    uint64_t calls[2];
    for (unsigned i = 0; i < 2; i++) {
        struct tokmap_cuda_device_info info = TOKMAP_CUDA_DEVICE_INFO_INIT;
        configure(i ? "numa=-1" : "numa=0");
        driver->reset();
        assert_int_equal(tokmap_cuda_device(0, &info, NULL), TOKMAP_OK);
        assert_int_equal(info.numa_node, i ? -1 : 0);
        calls[i] = counts_now().calls[ENTRY_cuDeviceGetAttribute];
    }
    assert_int_equal(calls[1], calls[0] + 3);
}

/* ---- the ring's memory ---- */

#define HUGE_PAGE ((uint64_t)2 << 20)

static struct {
    int (*call)(void *memory, size_t bytes, unsigned flags);
    const void *memory;
    uint64_t bytes;
} registered;

static int register_and_remember(void *memory, size_t bytes, unsigned flags)
{
    registered.memory = memory;
    registered.bytes = bytes;
    return registered.call(memory, bytes, flags);
}

/* From 2 MiB on, the memory that the GPU copies from begins at a multiple of 2 MiB, and the kernel is asked to use huge
 * pages for all of it. Page after page is mapped in between, so that no other alignment comes about by chance; and as a
 * ring is not a multiple of 2 MiB long, the kernel does not align it unasked. */
static void a_large_ring_begins_at_a_huge_page(void **unused)
{
    (void)unused;
    static const uint64_t sizes[] = {1000000, 2500000, 3300000, 5000000, 9000000, 17000000};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    const size_t page = os_page_bytes();
    void *between[SIZES];
    registered.call = table->host_register;
    table->host_register = register_and_remember;
    for (size_t i = 0; i < SIZES; i++) {
        struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
        struct tokmap_loader *loader;
        between[i] = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(between[i] != MAP_FAILED);
        options.device = "cuda:0";
        options.ring_bytes = sizes[i];
        memset(&advised, 0, sizeof advised);
        assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
        tokmap_loader_close(loader);
        assert_true(registered.bytes <= sizes[i] && registered.bytes > sizes[i] / 2);
        if (registered.bytes < HUGE_PAGE) {
            assert_null(advised.address);
            continue;
        }
        assert_true(registered.bytes % HUGE_PAGE);
        assert_int_equal((uintptr_t)registered.memory % HUGE_PAGE, 0);
        assert_ptr_equal(advised.address, registered.memory);
        assert_true(advised.bytes >= registered.bytes && advised.bytes < registered.bytes + page);
    }
    table->host_register = registered.call;
    for (size_t i = 0; i < SIZES; i++)
        munmap(between[i], page);
}

static void what_the_operator_can_do_is_said(void **unused)
{
    (void)unused;
    static const char *const cases[][2] = {{"fail=cuInit:1+:802", "fabric manager"},
                                           {"fail=cuInit:1+:803", "restart the machine"},
                                           {"fail=cuInit:1+:804", "cuda-compat"}};
    for (size_t i = 0; i < 3; i++) {
        struct tokmap_cuda_info info = TOKMAP_CUDA_INFO_INIT;
        struct tokmap_error error;
        configure(cases[i][0]);
        assert_int_equal(tokmap_cuda_probe(&info, &error), TOKMAP_ERROR_NO_DEVICE);
        assert_int_equal(error.device, 802 + i);
        if (!strstr(error.message, cases[i][1]))
            fail_msg("the message \"%s\" does not contain \"%s\"", error.message, cases[i][1]);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, finish)
    const struct CMUnitTest tests[] = {
        TEST(loaders_share_one_module),
        TEST(devices_have_modules_of_their_own),
        TEST(the_driver_compiles_only_where_it_must),
        TEST(the_first_batch_loads_nothing),
        TEST(a_launch_fills_the_device),
        TEST(streams_of_green_contexts_are_accepted),
        TEST(a_capture_keeps_off_the_legacy_stream),
        TEST(a_loader_survives_a_reset),
        TEST(only_what_still_exists_is_freed),
        TEST(a_loader_survives_the_driver),
        TEST(a_child_is_recognized_without_help_of_the_kernel),
        TEST(older_drivers_deliver),
        TEST(a_loader_reports_coherent_memory),
        TEST(an_unknown_node_is_looked_for),
        TEST(a_large_ring_begins_at_a_huge_page),
        TEST(what_the_operator_can_do_is_said),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
