/* SPDX-License-Identifier: MIT */
#include "device_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda_driver.h"
#include "platform/os.h"
#include "scratch.h"
#include "software_driver.h"

#define FIELDS 13
#define ASKED_VALUES (1u << 30) /* beside the bits of fields */
#define ASKED_PRESENT (1u << 31)
#define FILL 0xee /* bytes of the outputs before a batch is written */
#define SETS_MOST 16
#define STREAMS_MOST 4

static bool real;
static const struct cuda_driver *table; /* for calls that the library does not offer */
static struct CUctx_st *kept;           /* the primary context of device 0 */
static unsigned other_contexts;         /* that the current test makes besides */

/* Registered with atexit(). */
static void release_kept(void)
{
    (void)table->primary_release(0);
}

bool device_begin(char why[800])
{
    struct tokmap_error error;
    const char *asked = getenv("TOKMAP_TEST_GPU");
    real = asked && *asked;
    if (!real) {
        const struct software_driver *driver = software_driver();
        if (setenv("TOKMAP_CUDA_DRIVER", driver->path, 1))
            abort();
        (void)driver->configure("");
    }
    if (cuda_driver_open(&table, &error)) {
        (void)snprintf(why, 800, "%s", error.message);
        return false;
    }
    /* A real driver takes 0.1 to 0.4 s to make a primary context. So the program retains it once, not in each case. */
    int result = table->primary_retain(&kept, 0);
    if (result || atexit(release_kept)) {
        (void)cuda_driver_error(table, TOKMAP_ERROR_DEVICE, result, &error, "opening the primary context of the GPU");
        (void)snprintf(why, 800, "%s", error.message);
        return false;
    }
    if (!real)
        software_driver()->reset();
    return true;
}

bool device_is_real(void)
{
    return real;
}

void device_configure(const char *format, ...)
{
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!real && !software_driver()->configure(text))
        fail_msg("the emulated driver does not understand %s", text);
}

void device_is_clean(void)
{
    if (real)
        return;
    const uint64_t made = software_driver()->count("contexts_made");
    software_driver_is_content();
    software_driver_is_empty_but(1);
    if (made != other_contexts)
        fail_msg("%llu contexts were made besides that of the program", (unsigned long long)made);
    other_contexts = 0;
}

void device_makes_contexts(unsigned count)
{
    other_contexts += count;
}

/* ---- outputs ---- */

/* One set of outputs, on the host or the device, and the number of the batch in it. */
struct outputs {
    struct tokmap_out out;
    uint8_t *memory[FIELDS];
    uint64_t bytes[FIELDS]; /* 0: not requested */
    uint64_t number;
    struct CUstream_st *stream;
};

/* Everything that a running case owns, so that clean_up() can free it after any failure. */
struct running {
    struct device_case *test;
    const char *device;
    struct CUctx_st *context;
    struct tokmap_loader *host_loader, *device_loader;
    struct CUstream_st *streams[STREAMS_MOST];
    struct outputs host[SETS_MOST], on_device[SETS_MOST], taken[SETS_MOST];
    unsigned sets;
    unsigned shift; /* outputs begin this many bytes after a multiple of 256 */
    uint64_t state;
};

static const char *const field_names[FIELDS] = {
    "inputs", "targets",    "position_ids",     "rows",   "document_ids",  "loss_mask", "cu_seqlens", "targets_ahead",
    "labels", "source_ids", "cu_seqlens_slice", "values", "values_present"};

static bool failed(struct running *running, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool failed(struct running *running, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!*running->test->failure)
        (void)vsnprintf(running->test->failure, sizeof running->test->failure, format, arguments);
    va_end(arguments);
    return false;
}

static bool is_fine(struct running *running, enum tokmap_status status, const struct tokmap_error *error,
                    const char *what)
{
    return !status || failed(running, "%s: %s: %s", what, tokmap_status_name(status), error ? error->message : "");
}

static void point(struct outputs *outputs, enum tokmap_id_type type, uint64_t shift)
{
    void *at[FIELDS];
    for (unsigned i = 0; i < FIELDS; i++)
        at[i] = outputs->bytes[i] ? outputs->memory[i] + shift : NULL;
    outputs->out = (struct tokmap_out){.size = sizeof(struct tokmap_out),
                                       .type = type,
                                       .inputs = at[0],
                                       .targets = at[1],
                                       .position_ids = at[2],
                                       .rows = at[3],
                                       .document_ids = at[4],
                                       .loss_mask = at[5],
                                       .cu_seqlens = (int32_t *)at[6],
                                       .targets_ahead = at[7],
                                       .labels = at[8],
                                       .source_ids = at[9],
                                       .cu_seqlens_slice = (int32_t *)at[10],
                                       .values = {at[11]},
                                       .values_present = {at[12]}};
}

static bool outputs_new(struct running *running, struct outputs *outputs, bool on_device)
{
    const struct device_case *test = running->test;
    struct tokmap_run_info info = TOKMAP_RUN_INFO_INIT;
    struct tokmap_error error;
    uint64_t rows = tokmap_loader_rows(running->host_loader), element = test->type == TOKMAP_ID_I64 ? 8 : 4;
    uint64_t cu = tokmap_loader_cu_seqlens(running->host_loader);
    if (tokmap_run_info(test->run, &info))
        return failed(running, "tokmap_run_info failed");
    uint64_t cells = tokmap_loader_elements(running->host_loader) * element;
    uint64_t raw = rows * (info.seq_len_most + info.lookahead) * 4;
    const uint64_t elements = cells / element;
    const uint64_t bytes[FIELDS] = {cells,   cells,          cells,  raw,
                                    cells,   cells,          cu * 4, cells * info.lookahead,
                                    cells,   rows * element, cu * 4, elements * DEVICE_CASE_VALUES,
                                    elements};
    static const uint32_t bits[FIELDS] = {
        TOKMAP_INPUTS,           TOKMAP_TARGETS,    TOKMAP_POSITION_IDS,  TOKMAP_ROWS,   TOKMAP_DOCUMENT_IDS,
        TOKMAP_LOSS_MASK,        TOKMAP_CU_SEQLENS, TOKMAP_TARGETS_AHEAD, TOKMAP_LABELS, TOKMAP_SOURCE_IDS,
        TOKMAP_CU_SEQLENS_SLICE, ASKED_VALUES,      ASKED_PRESENT};
    const uint32_t asked = test->options.fields | (test->options.values ? ASKED_VALUES : 0) |
                           (test->options.values_present ? ASKED_PRESENT : 0);
    for (unsigned i = 0; i < FIELDS; i++) {
        void *memory = NULL;
        if (!(asked & bits[i]))
            continue;
        outputs->bytes[i] = bytes[i];
        if (!on_device)
            memory = malloc(bytes[i]);
        else if (!is_fine(running, tokmap_cuda_memory_new(running->device, bytes[i] + running->shift, &memory, &error),
                          &error, "memory"))
            return false;
        if (!memory)
            return failed(running, "out of memory");
        outputs->memory[i] = memory;
    }
    point(outputs, test->type, on_device ? running->shift : 0);
    return true;
}

static void outputs_free(const struct running *running, struct outputs *outputs, bool on_device)
{
    for (unsigned i = 0; i < FIELDS; i++) {
        if (on_device)
            tokmap_cuda_memory_free(running->device, outputs->memory[i]);
        else
            free(outputs->memory[i]);
    }
}

/* Fills the outputs, so that bytes that a batch does not write are found. */
static bool outputs_fill(struct running *running, struct outputs *host, struct outputs *device)
{
    for (unsigned i = 0; i < FIELDS; i++) {
        if (!host->bytes[i])
            continue;
        memset(host->memory[i], FILL, host->bytes[i]);
        if (table->memset_bytes((uint64_t)(uintptr_t)device->memory[i] + running->shift, FILL, host->bytes[i],
                                device->stream))
            return failed(running, "filling an output failed");
    }
    return true;
}

/* Enqueues copies of a batch from outputs that the next batch will overwrite. */
static bool outputs_take(struct running *running, const struct outputs *from, struct outputs *into)
{
    for (unsigned i = 0; i < FIELDS; i++)
        if (from->bytes[i] &&
            table->copy_on_device((uint64_t)(uintptr_t)into->memory[i] + running->shift,
                                  (uint64_t)(uintptr_t)from->memory[i] + running->shift, from->bytes[i], from->stream))
            return failed(running, "a copy on the device failed");
    into->stream = from->stream;
    into->number = from->number;
    return true;
}

static bool outputs_are_equal(struct running *running, const struct outputs *host, const struct outputs *device)
{
    struct tokmap_error error;
    bool equal = true;
    for (unsigned i = 0; i < FIELDS && equal; i++) {
        uint8_t *back = host->bytes[i] ? malloc(host->bytes[i]) : NULL;
        if (!host->bytes[i])
            continue;
        equal = is_fine(running,
                        tokmap_cuda_memory_read(running->device, back, device->memory[i] + running->shift,
                                                host->bytes[i], device->stream, &error),
                        &error, "reading an output back");
        for (uint64_t at = 0; equal && at < host->bytes[i]; at++)
            if (back[at] != host->memory[i][at])
                equal = failed(running, "batch %llu: %s differs at byte %llu of %llu: expected %u, found %u",
                               (unsigned long long)host->number, field_names[i], (unsigned long long)at,
                               (unsigned long long)host->bytes[i], host->memory[i][at], back[at]);
        free(back);
    }
    return equal;
}

/* ---- a case ---- */

static bool batches_are_equal(struct running *running, const struct tokmap_batch *one, const struct tokmap_batch *other)
{
    bool equal = one->step == other->step && one->first_row == other->first_row && one->count == other->count &&
                 one->tokens == other->tokens && one->last_in_step == other->last_in_step &&
                 one->width == other->width && one->row_tokens == other->row_tokens &&
                 !memcmp(&one->cursor, &other->cursor, sizeof one->cursor) && one->documents == other->documents &&
                 one->max_seqlen == other->max_seqlen && one->columns == other->columns &&
                 one->max_seqlen_slice == other->max_seqlen_slice;
    for (uint64_t i = 0; equal && i < one->count; i++)
        equal = !memcmp(&one->places[i], &other->places[i], sizeof one->places[i]) &&
                (!one->rows || !other->rows || !memcmp(one->rows[i], other->rows[i], one->row_tokens * one->width));
    return equal || failed(running, "the description of batch %llu differs from the host's",
                           (unsigned long long)running->test->batches);
}

static bool open_loaders(struct running *running)
{
    struct device_case *test = running->test;
    struct tokmap_loader_options options = test->options;
    struct tokmap_error error;
    options.device = NULL;
    options.threads = 0;
    options.ring_bytes = 0;
    if (!is_fine(running, tokmap_loader_open(&running->host_loader, test->run, &options, &error), &error,
                 "host loader"))
        return false;
    options = test->options;
    if (test->slots) { /* the ring of the host's loader has one slot, since it has no producer thread */
        struct tokmap_stats stats = TOKMAP_STATS_INIT;
        if (tokmap_loader_stats(running->host_loader, &stats))
            return failed(running, "tokmap_loader_stats failed");
        options.ring_bytes = stats.ring_bytes * test->slots;
    }
    return is_fine(running, tokmap_loader_open(&running->device_loader, test->run, &options, &error), &error,
                   "device loader");
}

static bool set_up(struct running *running)
{
    struct device_case *test = running->test;
    struct tokmap_error error;
    running->device = test->options.device;
    running->sets = test->ahead;
    /* a multiple of the elements' size; for some values the kernel takes a slower path */
    running->shift = (unsigned)random_below(&running->state, 5) * 8;
    if (running->sets < 1 || running->sets > SETS_MOST || test->streams > STREAMS_MOST)
        return failed(running, "the case is invalid: ahead or streams is out of range");
    if (!open_loaders(running))
        return false;
    for (unsigned i = 0; i < test->streams; i++)
        if (!is_fine(running, tokmap_cuda_stream_new(running->device, &running->streams[i], &error), &error, "stream"))
            return false;
    for (unsigned i = 0; i < running->sets; i++)
        if (!outputs_new(running, &running->host[i], false) || !outputs_new(running, &running->on_device[i], true) ||
            !outputs_new(running, &running->taken[i], true))
            return false;
    return true;
}

static void clean_up(struct running *running)
{
    struct tokmap_error error;
    for (unsigned i = 0; i < STREAMS_MOST; i++)
        if (running->streams[i])
            (void)is_fine(running, tokmap_cuda_stream_synchronize(running->device, running->streams[i], &error), &error,
                          "waiting for a stream");
    if (!running->test->streams && running->device_loader)
        (void)is_fine(running, tokmap_cuda_stream_synchronize(running->device, NULL, &error), &error, "waiting");
    tokmap_loader_close(running->device_loader);
    tokmap_loader_close(running->host_loader);
    for (unsigned i = 0; i < running->sets; i++) {
        outputs_free(running, &running->host[i], false);
        outputs_free(running, &running->on_device[i], true);
        outputs_free(running, &running->taken[i], true);
    }
    for (unsigned i = 0; i < STREAMS_MOST; i++)
        tokmap_cuda_stream_free(running->device, running->streams[i]);
}

/* Calls next() of both loaders once. *end: the run has ended. */
static bool step(struct running *running, bool *end)
{
    struct device_case *test = running->test;
    struct tokmap_batch host_batch = TOKMAP_BATCH_INIT, device_batch = TOKMAP_BATCH_INIT;
    struct tokmap_error error;
    uint64_t number = test->batches;
    struct outputs *host = &running->host[number % running->sets];
    struct outputs *target = &running->on_device[test->one_output ? 0 : number % running->sets];
    bool skip = random_below(&running->state, 9) == 0;
    struct CUstream_st *before = target->stream;
    target->stream = test->streams ? running->streams[number % test->streams] : NULL;
    host->number = target->number = number;
    if (test->one_output && number && before != target->stream &&
        !is_fine(running, tokmap_cuda_stream_wait(running->device, target->stream, before, &error), &error, "wait"))
        return false;
    if (!outputs_fill(running, host, target))
        return false;
    enum tokmap_status expected =
        tokmap_loader_next(running->host_loader, skip ? NULL : &host->out, NULL, &host_batch, NULL);
    enum tokmap_status status =
        tokmap_cuda_next(running->device_loader, skip ? NULL : &target->out, target->stream, &device_batch, &error);
    if (status != expected)
        return failed(running, "batch %llu: %s on the device, %s on the host: %s", (unsigned long long)number,
                      tokmap_status_name(status), tokmap_status_name(expected), error.message);
    *end = status == TOKMAP_END;
    if (*end)
        return true;
    test->cursor = device_batch.cursor;
    if (random_below(&running->state, 16) == 0)
        os_sleep_ns(random_below(&running->state, 300000));
    return batches_are_equal(running, &host_batch, &device_batch) &&
           (!test->one_output || outputs_take(running, target, &running->taken[number % running->sets]));
}

static bool compare(struct running *running, uint64_t number)
{
    const struct outputs *host = &running->host[number % running->sets];
    return outputs_are_equal(running, host,
                             running->test->one_output ? &running->taken[number % running->sets]
                                                       : &running->on_device[number % running->sets]);
}

/* Rewinds both loaders while work of theirs is still under way. */
static bool rewind_both(struct running *running)
{
    struct tokmap_error error;
    running->test->rewinds--;
    return is_fine(running, tokmap_loader_rewind(running->host_loader, &error), &error, "rewind on the host") &&
           is_fine(running, tokmap_loader_rewind(running->device_loader, &error), &error, "rewind on the device");
}

static bool run_all(struct running *running)
{
    struct device_case *test = running->test;
    bool end = false;
    uint64_t compared = 0;
    while (!end && test->batches < test->limit) {
        if (test->batches - compared == running->sets && !compare(running, compared++))
            return false;
        if (test->rewinds && random_below(&running->state, 12) == 0 && !rewind_both(running))
            return false;
        if (!step(running, &end))
            return false;
        test->batches += !end;
        if (end && test->rewinds && rewind_both(running))
            end = false;
    }
    while (compared < test->batches)
        if (!compare(running, compared++))
            return false;
    test->stats.size = sizeof test->stats;
    if (tokmap_loader_stats(running->device_loader, &test->stats) || test->stats.batches != test->batches)
        return failed(running, "the statistics have counted %llu batches", (unsigned long long)test->stats.batches);
    struct tokmap_loader_device info = TOKMAP_LOADER_DEVICE_INIT;
    if (tokmap_loader_device(running->device_loader, &info) || info.device < 0 || !info.kernel != test->host_expands)
        return failed(running, "the loader is on device %d, kernel %d: %s", info.device, info.kernel, info.reason);
    return true;
}

void device_case_run(struct device_case *test)
{
    struct running *running = calloc(1, sizeof *running);
    struct CUctx_st *popped;
    test->failure[0] = 0;
    test->batches = 0;
    if (!running)
        abort();
    running->test = test;
    running->state = test->seed;
    const char *colon = strchr(test->options.device, ':');
    int device = colon ? atoi(colon + 1) : 0;
    if (table->primary_retain(&running->context, device) || table->ctx_push(running->context)) {
        (void)failed(running, "no context");
    } else {
        if (set_up(running))
            (void)run_all(running);
        clean_up(running);
        (void)table->ctx_pop(&popped);
        (void)table->primary_release(device);
    }
    free(running);
}

/* ---- random cases ---- */

/* Lets every other case deliver slices of rows. Returns of what the length of a row must be a multiple. */
static unsigned choose_slices(struct device_case *test, uint64_t seed)
{
    uint64_t state = seed ^ 0x5eed;
    if (random_below(&state, 2))
        return 1;
    const unsigned world = 2 + (unsigned)random_below(&state, 4);
    test->options.context_world = world;
    test->options.context_rank = random_below(&state, world);
    test->options.context_layout = random_below(&state, 2) ? TOKMAP_CONTEXT_ZIGZAG : TOKMAP_CONTEXT_CONTIGUOUS;
    return test->options.context_layout == TOKMAP_CONTEXT_ZIGZAG ? 2 * world : world;
}

void device_case_give_values(const char *dataset)
{
    struct tokmap_dataset *opened;
    struct tokmap_values_writer *writer;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct tokmap_values_options options = TOKMAP_VALUES_OPTIONS_INIT;
    assert_int_equal(tokmap_dataset_open(&opened, dataset, NULL, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_dataset_info(opened, &info), TOKMAP_OK);
    uint8_t *bytes = malloc(info.tokens * DEVICE_CASE_VALUES);
    const void *const values[] = {bytes};
    assert_non_null(bytes);
    for (uint64_t i = 0; i < info.tokens * DEVICE_CASE_VALUES; i++)
        bytes[i] = (uint8_t)(1 + i * 131 % 251);
    assert_int_equal(tokmap_values_open(&writer, opened, "v:u8[3]", NULL, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_values_put_at(writer, 0, info.tokens - 300, values, NULL), TOKMAP_OK);
    options.holes = 1;
    assert_int_equal(tokmap_values_finish(writer, &options, NULL, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_values_close(writer, NULL), TOKMAP_OK);
    tokmap_dataset_close(opened);
    free(bytes);
}

void device_case_random(struct device_case *test, uint64_t seed, const char *narrow, const char *wide, char text[400])
{
    static const unsigned lengths[] = {1, 2, 3, 5, 31, 63, 64, 65, 100, 127, 128, 129, 333, 1000};
    static const struct tokmap_loader_options defaults = TOKMAP_LOADER_OPTIONS_INIT;
    uint64_t state = seed;
    *test = (struct device_case){.options = defaults, .limit = UINT64_MAX, .seed = seed};
    unsigned batch = 1 + (unsigned)random_below(&state, 9), lookahead = (unsigned)random_below(&state, 4);
    unsigned seq_len = lengths[random_below(&state, sizeof lengths / sizeof *lengths)];
    const unsigned divisor = choose_slices(test, seed);
    seq_len = (seq_len + divisor - 1) / divisor * divisor;
    unsigned steps = 6 + (unsigned)random_below(&state, 12);
    const char *skip = random_below(&state, 4) ? "" : "skip 2..4\n", *dataset = random_below(&state, 2) ? narrow : wide;
    (void)snprintf(text, 400, "seq_len %u\nbatch %u\nseed %u\nlookahead %u\nsteps %u\n%ssource data %s\n", seq_len,
                   batch, (unsigned)seed, lookahead == 3 ? 5 : lookahead, steps, skip, dataset);
    test->options.device = random_below(&state, 2) ? "cuda" : "cuda:0";
    test->options.world = 1 + random_below(&state, batch < 3 ? batch : 3);
    test->options.rank = random_below(&state, test->options.world);
    test->options.rows = random_below(&state, 4);
    test->options.threads = random_below(&state, 4) != 0;
    test->options.fields = 1 + (uint32_t)random_below(&state, 127);
    if (random_below(&state, 3) == 0)
        test->options.fields = 127;
    if (!lookahead)
        test->options.fields &= ~(uint32_t)(TOKMAP_TARGETS | TOKMAP_LOSS_MASK);
    test->options.mask_targets = (test->options.fields & TOKMAP_TARGETS) && random_below(&state, 2);
    test->options.values = seed % 3 == 1 ? "v" : NULL;
    test->options.values_present = seed % 3 == 1 && seed % 2;
    test->type = random_below(&state, 2) ? TOKMAP_ID_I64 : TOKMAP_ID_I32;
    test->ahead = 1 + (unsigned)random_below(&state, 6);
    test->streams = (unsigned)random_below(&state, 4);
    test->one_output = random_below(&state, 3) == 0;
    test->slots = random_below(&state, 6);
    if (lookahead && random_below(&state, 3) == 0)
        test->options.fields |= TOKMAP_TARGETS_AHEAD;
    if (random_below(&state, 2))
        test->options.fields |= TOKMAP_LABELS;
    if (random_below(&state, 3) == 0)
        test->options.fields |= TOKMAP_SOURCE_IDS;
    if (test->options.context_world > 1) {
        test->options.fields &= ~(uint32_t)TOKMAP_ROWS;
        if (!test->options.fields)
            test->options.fields = TOKMAP_POSITION_IDS;
        if (seed % 3 == 0)
            test->options.fields |= TOKMAP_CU_SEQLENS_SLICE;
    }
    if ((test->options.fields & TOKMAP_INPUTS) && !(test->options.fields & (TOKMAP_TARGETS | TOKMAP_LABELS)))
        test->options.mask_targets = 1; /* inputs by themselves need it where the run is padded */
    if (random_below(&state, 2) == 0)
        return;
    /* A mixture of both widths, whose batch and sequence length change, with windows that overlap or are padded. */
    const unsigned stride =
        seq_len > 3 && random_below(&state, 2) ? 1 + (unsigned)random_below(&state, seq_len - 1) : 0;
    const size_t used = strlen(text);
    (void)snprintf(text + used, 400 - used, "source wide %s\nphase 0 data 2 wide 1\nphase 4 batch %u seq_len %u\n%s",
                   wide, batch + (unsigned)random_below(&state, 5),
                   seq_len + (unsigned)random_below(&state, 70) / divisor * divisor,
                   random_below(&state, 2) ? "tail pad\n" : "");
    if (stride)
        (void)snprintf(text + strlen(text), 400 - strlen(text), "stride %u\n", stride);
    if (stride && (test->options.fields & (TOKMAP_TARGETS | TOKMAP_TARGETS_AHEAD)))
        test->options.fields |= TOKMAP_LOSS_MASK;
}

void device_case_whole(struct device_case *test, uint64_t seed)
{
    static const struct tokmap_loader_options defaults = TOKMAP_LOADER_OPTIONS_INIT;
    char ignored[400];
    device_case_random(test, seed, "narrow.list", "wide.list", ignored);
    test->options.values = NULL;
    test->options.values_present = 0;
    test->options.context_rank = defaults.context_rank;
    test->options.context_world = defaults.context_world;
}
