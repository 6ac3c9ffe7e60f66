/* SPDX-License-Identifier: MIT */
/*
 * trace.c - see trace.h.
 *
 * The queue has one writer, the consumer, which advances `queued`, and readers that hold the lock and advance
 * `written`. Its records are stored before `queued`, in release order. The lock is held while records are written to
 * the file. The consumer takes it only where the queue is full or a write has failed.
 */
#include "trace.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"

#define QUEUE 256 /* records; a power of two */

struct trace {
    struct trace_writer *writer; /* NULL between the end of a run and trace_begin() */
    struct os_mutex *lock;
    char *path;
    uint64_t queued, written; /* records so far; accessed atomically */
    uint32_t failed;          /* a write has failed; accessed atomically */
    uint64_t sum;             /* of the step that is being delivered; of the consumer */
    struct trace_record records[QUEUE];
};

enum tokmap_status trace_open(struct trace **made, const char *path, const struct trace_header *header,
                              struct tokmap_error *error)
{
    struct trace *trace = calloc(1, sizeof *trace);
    *made = NULL;
    if (!trace || !(trace->path = strdup(path)) || os_mutex_new(&trace->lock)) {
        trace_close(trace, true);
        return error_set_memory(error, "the trace", sizeof *trace);
    }
    enum tokmap_status status = trace_writer_open(&trace->writer, trace->path, error);
    if (!status)
        status = trace_writer_begin(trace->writer, header, error);
    if (status)
        trace_close(trace, true);
    else
        *made = trace;
    return status;
}

void trace_close(struct trace *trace, bool drop)
{
    if (!trace)
        return;
    if (!drop)
        (void)trace_flush(trace, NULL);
    trace_writer_close(trace->writer);
    os_mutex_free(trace->lock);
    free(trace->path);
    free(trace);
}

/* Writes what is queued; the lock is held. */
static enum tokmap_status write_queued(struct trace *trace, struct tokmap_error *error)
{
    const uint64_t queued = __atomic_load_n(&trace->queued, __ATOMIC_ACQUIRE);
    enum tokmap_status status = TOKMAP_OK;
    while (!status && trace->written < queued) {
        const uint64_t at = trace->written & (QUEUE - 1), count = min64(queued - trace->written, QUEUE - at);
        status = trace_writer_add(trace->writer, trace->records + at, count, error);
        if (!status)
            __atomic_store_n(&trace->written, trace->written + count, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&trace->failed, status != TOKMAP_OK, __ATOMIC_RELAXED);
    return status;
}

enum tokmap_status trace_flush(struct trace *trace, struct tokmap_error *error)
{
    os_mutex_lock(trace->lock);
    enum tokmap_status status = write_queued(trace, error);
    os_mutex_unlock(trace->lock);
    return status;
}

enum tokmap_status trace_end(struct trace *trace, struct tokmap_error *error)
{
    const enum tokmap_status status = trace_flush(trace, error); /* after which nobody needs a writer */
    if (!status) {
        trace_writer_close(trace->writer);
        trace->writer = NULL;
    }
    return status;
}

void trace_drain(struct trace *trace)
{
    if (__atomic_load_n(&trace->queued, __ATOMIC_RELAXED) != __atomic_load_n(&trace->written, __ATOMIC_RELAXED))
        (void)trace_flush(trace, NULL);
}

enum tokmap_status trace_begin(struct trace *trace, const struct trace_header *header, struct tokmap_error *error)
{
    os_mutex_lock(trace->lock);
    enum tokmap_status status = write_queued(trace, error);
    if (!status && !trace->writer)
        status = trace_writer_open(&trace->writer, trace->path, error);
    if (!status)
        status = trace_writer_begin(trace->writer, header, error);
    os_mutex_unlock(trace->lock);
    if (!status)
        trace->sum = 0;
    return status;
}

bool trace_is_ready(const struct trace *trace)
{
    return !__atomic_load_n(&trace->failed, __ATOMIC_RELAXED) &&
           trace->queued - __atomic_load_n(&trace->written, __ATOMIC_ACQUIRE) < QUEUE;
}

void trace_add(struct trace *trace, uint64_t step, uint64_t sum, bool last)
{
    trace->sum += sum;
    if (!last)
        return;
    trace->records[trace->queued & (QUEUE - 1)] = (struct trace_record){step, trace->sum};
    __atomic_store_n(&trace->queued, trace->queued + 1, __ATOMIC_RELEASE);
    trace->sum = 0;
}
