/* SPDX-License-Identifier: MIT */
/* loops.c - see loops.h. */
#include "loops.h"

#include <string.h>

#include "common/bytes.h"
#include "common/cpu.h"
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
    attribute void name(const void *window, uint32_t width, uint64_t seq_len, enum tokmap_id_type type, void *inputs,  \
                        void *targets)                                                                                 \
    {                                                                                                                  \
        widen(window, width, seq_len, type, inputs, targets);                                                          \
    }

VARIANT(plain_widen_base, )
#if defined(__x86_64__)
VARIANT(widen_avx2, static __attribute__((target("avx2"))))
#if defined(__clang__)
VARIANT(widen_avx512, static __attribute__((target("avx512f,avx512bw,avx512vl"))))
#else
VARIANT(widen_avx512, static __attribute__((target("avx512f,avx512bw,avx512vl,prefer-vector-width=512"))))
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
    return plain_widen_base;
}

/* ---- outputs ---- */

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

/* Allocates memory for the values of a batch, and touches every page. */
static void values_new(struct bench *bench, struct reader *reader)
{
    struct tokmap_values_info info = TOKMAP_VALUES_INFO_INIT;
    if (tokmap_loader_values(reader->loader, 0, &info) ||
        mul_overflows(tokmap_loader_elements(reader->loader), info.bytes, &reader->values_bytes) ||
        os_memory_new(reader->values_bytes, true, &reader->out.values[0]))
        bench_no_memory(bench);
    memset(reader->out.values[0], 1, (size_t)reader->values_bytes);
}

void reader_open(struct bench *bench, struct reader *reader, const struct tokmap_run *run,
                 const struct tokmap_loader_options *options)
{
    reader_open_bare(bench, reader, run, options);
    if (options->values)
        values_new(bench, reader);
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
    os_memory_free(reader->out.values[0], reader->values_bytes);
    reader->out.values[0] = NULL;
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
