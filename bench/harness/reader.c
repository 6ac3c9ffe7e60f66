/* SPDX-License-Identifier: MIT */
/* reader.c - see reader.h. */
#include "reader.h"

#include <assert.h>
#include <string.h>

#include "cli/cli.h"
#include "common/error.h"
#include "platform/os.h"

int reader_open_loader(struct bench *bench, struct reader *reader, const struct tokmap_run *run, uint32_t threads,
                       uint32_t fields, uint64_t step)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_cursor cursor;
    char text[TOKMAP_CURSOR_TEXT];
    assert(threads <= 1 && !(fields & ~(uint32_t)(TOKMAP_INPUTS | TOKMAP_TARGETS)));
    reader_clear(reader);
    options.rank = bench->rank;
    options.world = bench->options.world;
    options.rows = bench->options.rows;
    options.ring_bytes = bench->ring_bytes;
    enum tokmap_status status = tokmap_run_cursor(run, step, &cursor, &reader->error);
    if (!status) {
        tokmap_cursor_print(&cursor, text);
        options.threads = threads;
        options.fields = fields;
        options.resume = step ? text : NULL;
        status = tokmap_loader_open(&reader->loader, run, &options, &reader->error);
    }
    return status ? bench_failed(bench, &reader->error) : CLI_DONE;
}

int reader_open(struct bench *bench, struct reader *reader, const struct tokmap_run *run, uint32_t threads,
                uint32_t fields, uint64_t step)
{
    const int result = reader_open_loader(bench, reader, run, threads, fields, step);
    if (result)
        return result;
    const uint64_t rows = tokmap_loader_rows(reader->loader);
    if (fields && outputs_new(&reader->outputs, rows, bench->options.seq_len, TOKMAP_I64))
        return bench_no_memory(bench);
    reader->out.inputs = fields & TOKMAP_INPUTS ? reader->outputs.inputs : NULL;
    reader->out.targets = fields & TOKMAP_TARGETS ? reader->outputs.targets : NULL;
    return CLI_DONE;
}

void reader_close(struct reader *reader)
{
    tokmap_loader_close(reader->loader);
    outputs_free(&reader->outputs);
    reader->loader = NULL;
}

#define BATCHES 16 /* batches for each look at the clock, if calls are not timed one by one */

int reader_repeat(struct bench *bench, struct reader *reader, enum tokmap_type type, double seconds,
                  struct samples *samples, double *rate, double *cpu)
{
    uint64_t length = (uint64_t)(seconds * 1e9), tokens = 0, cpu_started = os_process_cpu_ns();
    uint64_t started = os_clock_ns(), now = started;
    reader->out.type = type;
    while (now - started < length && !bench_stopped()) {
        for (int i = 0; i < (samples ? 1 : BATCHES); i++) {
            if (reader_next(reader))
                return bench_failed(bench, &reader->error);
            tokens += reader->batch.tokens;
        }
        const uint64_t then = os_clock_ns();
        if (samples)
            samples_add(samples, then - now);
        now = then;
    }
    if (rate)
        *rate = (double)tokens / ((double)(now - started) / 1e9);
    if (cpu)
        *cpu = (double)(os_process_cpu_ns() - cpu_started) / 1e9 / ((double)tokens / 1e6);
    return CLI_DONE;
}

void reader_stats(const struct reader *reader, struct tokmap_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    stats->size = sizeof *stats;
    if (tokmap_loader_stats(reader->loader, stats))
        stats->size = 0;
}

int reader_fill(struct bench *bench, struct reader *reader)
{
    struct tokmap_stats stats;
    uint64_t started = os_clock_ns();
    do {
        if (reader_next(reader))
            return bench_failed(bench, &reader->error);
        os_sleep_ns(1000000);
        reader_stats(reader, &stats);
        /* The slot of the batch that was delivered last cannot be filled. */
    } while (stats.ring_ready + 1 < stats.ring_slots && os_clock_ns() - started < 1000000000 && !bench_stopped());
    return CLI_DONE;
}

double waits_at(const struct tokmap_stats *before, const struct tokmap_stats *after, double share)
{
    uint64_t all = 0, passed = 0;
    for (int i = 0; i < TOKMAP_WAIT_BUCKETS; i++)
        all += after->wait_histogram[i] - before->wait_histogram[i];
    const double rank = share * (double)all;
    for (int i = 0; i < TOKMAP_WAIT_BUCKETS && all; i++) {
        const uint64_t count = after->wait_histogram[i] - before->wait_histogram[i];
        if (count && (double)(passed + count) >= rank) {
            if (i == 0)
                return 0;
            const double low = (double)((uint64_t)1 << (i - 1));
            return low + low * (rank - (double)passed) / (double)count;
        }
        passed += count;
    }
    return 0;
}
