/* SPDX-License-Identifier: MIT */
/* statistics.c - see statistics.h. */
#include "statistics.h"

#include "common/bytes.h"

/* Adds to a counter. There is one writer, so a plain sum is enough. It is stored atomically, so that a reader sees the
 * old or the new number. */
static void counter_add(uint64_t *counter, uint64_t more)
{
    __atomic_store_n(counter, *counter + more, __ATOMIC_RELAXED);
}

static void raise_to(uint64_t *counter, uint64_t value)
{
    if (value > *counter)
        __atomic_store_n(counter, value, __ATOMIC_RELAXED);
}

static uint64_t counter_read(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

void statistics_wait(struct statistics *statistics, uint64_t ns)
{
    unsigned bucket = ns ? 64 - (unsigned)__builtin_clzll(ns) : 0;
    counter_add(&statistics->wait_histogram[bucket < TOKMAP_WAIT_BUCKETS ? bucket : TOKMAP_WAIT_BUCKETS - 1], 1);
    if (!ns)
        return;
    counter_add(&statistics->waits, 1);
    counter_add(&statistics->wait_ns, ns);
    raise_to(&statistics->wait_ns_largest, ns);
}

void statistics_at(struct statistics *statistics, uint64_t step)
{
    __atomic_store_n(&statistics->step, step, __ATOMIC_RELAXED);
}

void statistics_batch(struct statistics *statistics, const struct tokmap_batch *batch)
{
    counter_add(&statistics->batches, 1);
    counter_add(&statistics->rows, batch->count);
    counter_add(&statistics->tokens, batch->tokens);
    if (batch->real_rows < batch->count)
        counter_add(&statistics->padding, batch->count - batch->real_rows);
    statistics_at(statistics, batch->cursor.step);
    for (uint64_t i = 0; i < batch->real_rows; i++) {
        const struct tokmap_place *place = &batch->places[i];
        struct source_counts *source = &statistics->sources[place->source];
        counter_add(&source->rows, 1);
        const uint64_t slices = batch->seq_len / batch->columns;
        counter_add(&source->tokens, min64(place->tokens, batch->seq_len) / slices);
        raise_to(&source->epoch, place->epoch);
        raise_to(&statistics->epoch, place->epoch);
    }
}

void statistics_excluded(struct statistics *statistics, uint64_t tokens, uint64_t rows)
{
    counter_add(&statistics->excluded, tokens);
    counter_add(&statistics->excluded_rows, rows);
}

void statistics_ready(struct statistics *statistics, uint32_t ready)
{
    if (ready < statistics->ready_lowest)
        __atomic_store_n(&statistics->ready_lowest, ready, __ATOMIC_RELAXED);
}

void statistics_read(const struct statistics *statistics, struct tokmap_stats *out)
{
    out->batches = counter_read(&statistics->batches);
    out->rows = counter_read(&statistics->rows);
    out->tokens = counter_read(&statistics->tokens);
    out->padding = counter_read(&statistics->padding);
    out->excluded = counter_read(&statistics->excluded);
    out->excluded_rows = counter_read(&statistics->excluded_rows);
    out->epoch = counter_read(&statistics->epoch);
    out->waits = counter_read(&statistics->waits);
    out->wait_ns = counter_read(&statistics->wait_ns);
    out->wait_ns_largest = counter_read(&statistics->wait_ns_largest);
    for (unsigned i = 0; i < TOKMAP_WAIT_BUCKETS; i++)
        out->wait_histogram[i] = counter_read(&statistics->wait_histogram[i]);
    out->ring_ready_lowest = __atomic_load_n(&statistics->ready_lowest, __ATOMIC_RELAXED);
}

void statistics_read_source(const struct statistics *statistics, uint64_t source, struct tokmap_source_stats *out)
{
    const struct source_counts *counts = &statistics->sources[source];
    out->rows = counter_read(&counts->rows);
    out->tokens = counter_read(&counts->tokens);
    out->epoch = counter_read(&counts->epoch);
    out->bytes = counter_read(&counts->bytes);
}

/* ---- alarms ---- */

#define CALLS 100
#define PERCENT 10

bool stalls_count(struct stalls *stalls, const struct tokmap_loader_options *options, uint64_t step, uint64_t ns,
                  struct tokmap_stall *stall)
{
    const uint64_t calls = options->alarm_calls ? options->alarm_calls : CALLS;
    const uint64_t percent = options->alarm_percent ? options->alarm_percent : PERCENT;
    if (!stalls->opened) {
        stalls->opened = true;
        return false;
    }
    stalls->calls++;
    stalls->stalled += ns != 0;
    stalls->wait_ns += ns;
    if (stalls->calls < calls)
        return false;
    const bool before = stalls->above;
    stalls->above = stalls->stalled * 100 >= percent * calls;
    *stall = (struct tokmap_stall){sizeof *stall, step, calls, stalls->stalled, stalls->wait_ns};
    stalls->calls = stalls->stalled = stalls->wait_ns = 0;
    if (!stalls->above || before)
        return false;
    __atomic_store_n(&stalls->alarms, stalls->alarms + 1, __ATOMIC_RELAXED);
    return true;
}

void stalls_restart(struct stalls *stalls)
{
    stalls->opened = false;
    stalls->calls = stalls->stalled = stalls->wait_ns = 0;
}
