/* SPDX-License-Identifier: MIT */
/* loops.c - see loops.h. */
#include "loops.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/cpu.h"
#include "common/error.h"
#include "platform/os.h"

/* ---- the loop's body: one source, compiled for several instruction sets ---- */

/* The inner loops have a constant length, because gcc vectorizes only such loops at -O2. */
#define STRIDE 64

#define WIDEN(name, from, into)                                                                                        \
    static inline __attribute__((always_inline)) void name(const from *restrict tokens, uint64_t n,                    \
                                                           into *restrict inputs, into *restrict targets)              \
    {                                                                                                                  \
        uint64_t i = 0;                                                                                                \
        for (; i + STRIDE <= n; i += STRIDE) {                                                                         \
            for (int j = 0; j < STRIDE; j++)                                                                           \
                inputs[i + (uint64_t)j] = tokens[i + (uint64_t)j];                                                     \
            for (int j = 0; j < STRIDE; j++)                                                                           \
                targets[i + (uint64_t)j] = tokens[i + (uint64_t)j + 1];                                                \
        }                                                                                                              \
        for (; i < n; i++) {                                                                                           \
            inputs[i] = tokens[i];                                                                                     \
            targets[i] = tokens[i + 1];                                                                                \
        }                                                                                                              \
    }

WIDEN(widen_16_32, uint16_t, uint32_t)
WIDEN(widen_16_64, uint16_t, uint64_t)
WIDEN(widen_32_32, uint32_t, uint32_t)
WIDEN(widen_32_64, uint32_t, uint64_t)

static inline __attribute__((always_inline)) void widen(const void *window, uint32_t width, uint64_t seq_len,
                                                        enum tokmap_id_type type, void *inputs, void *targets)
{
    if (width == 2 && type == TOKMAP_ID_I32)
        widen_16_32(window, seq_len, inputs, targets);
    else if (width == 2)
        widen_16_64(window, seq_len, inputs, targets);
    else if (type == TOKMAP_ID_I32)
        widen_32_32(window, seq_len, inputs, targets);
    else
        widen_32_64(window, seq_len, inputs, targets);
}

#define VARIANT(name, attribute)                                                                                       \
    attribute static void name(const void *window, uint32_t width, uint64_t seq_len, enum tokmap_id_type type,         \
                               void *inputs, void *targets)                                                            \
    {                                                                                                                  \
        widen(window, width, seq_len, type, inputs, targets);                                                          \
    }

VARIANT(widen_base, )
#if defined(__x86_64__)
VARIANT(widen_avx2, __attribute__((target("avx2"))))
#if defined(__clang__)
VARIANT(widen_avx512, __attribute__((target("avx512f,avx512bw,avx512vl"))))
#else
VARIANT(widen_avx512, __attribute__((target("avx512f,avx512bw,avx512vl,prefer-vector-width=512"))))
#endif
#endif

plain_widen *plain_widen_widest(void)
{
#if defined(__x86_64__)
    if (cpu_has(CPU_AVX512))
        return widen_avx512;
    if (cpu_has(CPU_AVX2))
        return widen_avx2;
#endif
    return widen_base;
}

/* ---- windows ---- */

static enum tokmap_status windows_find(struct windows *windows, const struct tokmap_dataset *dataset, uint64_t tokens,
                                       uint64_t most, uint64_t seed, struct tokmap_error *error)
{
    struct tokmap_order order;
    const uint64_t all = (tokens - 1 - windows->shift) / windows->seq_len;
    enum tokmap_status status = tokmap_order_init(&order, all, seed, "bench", 0);
    for (uint64_t draw = 0; !status && draw < all && windows->count < most; draw++) {
        struct tokmap_span spans[2];
        size_t used = 0;
        const uint64_t first = windows->shift + tokmap_order_window(&order, draw) * windows->seq_len;
        status = tokmap_dataset_view(dataset, first, windows->seq_len + 1, spans, 2, &used, error);
        if (status == TOKMAP_ERROR_LIMIT || (!status && used != 1)) {
            status = TOKMAP_OK; /* the window crosses the boundary of two shards */
            continue;
        }
        if (status)
            break;
        windows->first[windows->count] = first;
        windows->at[windows->count++] = spans[0].tokens;
    }
    if (!status && !windows->count)
        status = error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                           "No shard is long enough for a window of %" PRIu64 " tokens; give a smaller --seq-len.",
                           windows->seq_len + 1);
    return status;
}

void windows_new(struct bench *bench, struct windows *windows, const struct tokmap_dataset *dataset, uint64_t most,
                 uint64_t seed)
{
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    const uint64_t seq_len = bench->options.seq_len;
    memset(windows, 0, sizeof *windows);
    assert(most);
    enum tokmap_status status = tokmap_dataset_info(dataset, &info);
    if (status)
        bench_check(bench,
                    error_set(&bench->error, status, NULL, TOKMAP_NO_OFFSET, "The dataset cannot be described."));
    if (info.tokens <= seq_len)
        bench_check(bench, error_set(&bench->error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                                     "The dataset has %" PRIu64 " tokens, but a window needs %" PRIu64
                                     "; give a smaller --seq-len.",
                                     info.tokens, seq_len + 1));
    windows->shift = min64(seq_len / 3, info.tokens - 1 - seq_len);
    most = min64(most, (info.tokens - 1 - windows->shift) / seq_len);
    windows->seq_len = seq_len;
    windows->width = info.width;
    windows->at = bench_new(bench, most, sizeof *windows->at);
    windows->first = bench_new(bench, most, sizeof *windows->first);
    bench_check(bench, windows_find(windows, dataset, info.tokens, most, seed, &bench->error));
    for (uint64_t i = 0; i < windows->count; i++)
        (void)os_map_populate(windows->at[i], (seq_len + 1) * info.width); /* if this fails, the first repeat faults */
}

void windows_free(struct windows *windows)
{
    free(windows->at);
    free(windows->first);
    windows->at = NULL;
    windows->first = NULL;
    windows->count = 0;
}

/* ---- windows of a file ---- */

void plain_file_open(struct bench *bench, struct plain_file *file, const struct windows *windows,
                     const struct tokmap_shard_info *shard)
{
    const uint64_t tokens = shard->tokens - min64(1 + windows->shift, shard->tokens);
    *file = (struct plain_file){.windows = max64(1, tokens / windows->seq_len),
                                .window = bench_new(bench, windows->seq_len + 1, windows->width)};
    bench_check_system(bench, os_open(shard->tokens_path, OS_READ, &file->fd), shard->tokens_path,
                       "The tokens cannot be opened.");
}

void plain_file_close(struct plain_file *file)
{
    os_close(file->fd);
    free(file->window);
}

void plain_file_read(const struct plain_file *file, const struct windows *windows, uint64_t *next, uint8_t *into)
{
    const uint64_t shift = windows->shift, first = windows->first[windows_next(windows, next)];
    const uint64_t window = (first - shift) / windows->seq_len % file->windows;
    size_t got;
    (void)os_pread(file->fd, into, (size_t)((windows->seq_len + 1) * windows->width),
                   (shift + window * windows->seq_len) * windows->width, &got);
}

/* ---- outputs and repeats ---- */

void outputs_allocate(struct bench *bench, struct outputs *outputs, uint64_t rows, enum tokmap_id_type type)
{
    memset(outputs, 0, sizeof *outputs);
    if (mul_overflows(rows * (type == TOKMAP_ID_I64 ? 8 : 4), bench->options.seq_len, &outputs->bytes) ||
        os_memory_new(outputs->bytes, true, &outputs->inputs) || os_memory_new(outputs->bytes, true, &outputs->targets))
        bench_no_memory(bench);
}

void outputs_new(struct bench *bench, struct outputs *outputs, uint64_t rows, enum tokmap_id_type type)
{
    outputs_allocate(bench, outputs, rows, type);
    memset(outputs->inputs, 1, (size_t)outputs->bytes);
    memset(outputs->targets, 1, (size_t)outputs->bytes);
}

void outputs_free(struct outputs *outputs)
{
    os_memory_free(outputs->inputs, outputs->bytes);
    os_memory_free(outputs->targets, outputs->bytes);
    outputs->inputs = outputs->targets = NULL;
}

static void plain_batch(const struct plain_loop *loop, uint64_t *next)
{
    const struct plain_file *file = loop->file;
    const struct windows *windows = loop->windows;
    const uint64_t row_bytes = windows->seq_len * (loop->type == TOKMAP_ID_I64 ? 8 : 4);
    uint8_t *inputs = loop->outputs->inputs, *targets = loop->outputs->targets;
    for (uint64_t row = 0; row < loop->rows; row++) {
        if (file)
            plain_file_read(file, windows, next, file->window);
        widen_base(file ? file->window : windows->at[windows_next(windows, next)], windows->width, windows->seq_len,
                   loop->type, inputs + row * row_bytes, targets + row * row_bytes);
    }
}

double plain_loop_repeat(const struct plain_loop *loop, uint64_t *next, double seconds, struct samples *samples)
{
    const uint64_t length = (uint64_t)(seconds * 1e9);
    uint64_t batches = 0;
    assert(*next < loop->windows->count);
    const uint64_t started = os_clock_ns();
    uint64_t now = started;
    while (now - started < length) {
        if (samples) {
            plain_batch(loop, next);
            const uint64_t then = os_clock_ns();
            samples_add(samples, then - now);
            now = then;
            batches++;
        } else {
            for (int i = 0; i < 16; i++) /* batches for each look at the clock */
                plain_batch(loop, next);
            now = os_clock_ns();
            batches += 16;
        }
    }
    return (double)(batches * loop->rows * loop->windows->seq_len) / ((double)(now - started) / 1e9);
}

/* ==== the loader's loop ==== */

struct tokmap_loader_options reader_options(const struct bench *bench, uint32_t threads, uint32_t fields)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    options.rank = bench->rank;
    options.world = bench->options.world;
    options.rows = bench->options.rows;
    options.ring_bytes = bench->ring_bytes;
    options.threads = threads;
    options.fields = fields;
    return options;
}

void reader_open_bare(struct bench *bench, struct reader *reader, const struct tokmap_run *run,
                      const struct tokmap_loader_options *options)
{
    *reader = (struct reader){.out = TOKMAP_OUT_INIT, .batch = TOKMAP_BATCH_INIT};
    bench_check(bench, tokmap_loader_open(&reader->loader, run, options, &bench->error));
}

void reader_open(struct bench *bench, struct reader *reader, const struct tokmap_run *run,
                 const struct tokmap_loader_options *options)
{
    reader_open_bare(bench, reader, run, options);
    if (options->fields)
        outputs_new(bench, &reader->outputs, tokmap_loader_rows(reader->loader), TOKMAP_ID_I64);
    reader->out.type = TOKMAP_ID_I32;
    reader->out.inputs = options->fields & TOKMAP_INPUTS ? reader->outputs.inputs : NULL;
    reader->out.targets = options->fields & TOKMAP_TARGETS ? reader->outputs.targets : NULL;
}

void reader_close(struct reader *reader)
{
    tokmap_loader_close(reader->loader);
    outputs_free(&reader->outputs);
    reader->loader = NULL;
}

#define BATCHES 16 /* batches for each look at the clock, if calls are not timed one by one */

void reader_take(struct bench *bench, struct reader *reader, uint64_t batches)
{
    for (uint64_t i = 0; i < batches && !bench_stopped(); i++)
        if (reader_next(reader))
            bench_failed(bench, &reader->error);
}

uint64_t reader_first_pass(struct bench *bench, struct reader *reader, uint64_t windows)
{
    const uint64_t batches = min64(windows, READER_WINDOWS_MOST) / bench->options.rows + 1;
    reader_take(bench, reader, batches);
    return batches;
}

double reader_repeat(struct bench *bench, struct reader *reader, enum tokmap_id_type type, double seconds,
                     struct samples *samples, double *cpu)
{
    uint64_t length = (uint64_t)(seconds * 1e9), tokens = 0, cpu_started = os_process_cpu_ns();
    uint64_t started = os_clock_ns(), now = started;
    reader->out.type = type;
    while (now - started < length && !bench_stopped()) {
        for (int i = 0; i < (samples ? 1 : BATCHES); i++) {
            if (reader_next(reader))
                bench_failed(bench, &reader->error);
            tokens += reader->batch.tokens;
        }
        const uint64_t then = os_clock_ns();
        if (samples)
            samples_add(samples, then - now);
        now = then;
    }
    if (cpu)
        *cpu = (double)(os_process_cpu_ns() - cpu_started) / 1e9 / ((double)tokens / 1e6);
    return (double)tokens / ((double)(now - started) / 1e9);
}

void readers_compare(struct bench *bench, struct reader *const readers[2], struct repeats repeats, double seconds,
                     struct series rates[2])
{
    while (repeats_next(&repeats))
        for (int i = 0; i < 2; i++)
            repeats_add(&repeats, &rates[i], reader_repeat(bench, readers[i], TOKMAP_ID_I32, seconds, NULL, NULL));
}

void reader_stats(const struct reader *reader, struct tokmap_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    stats->size = sizeof *stats;
    if (tokmap_loader_stats(reader->loader, stats))
        stats->size = 0;
}
