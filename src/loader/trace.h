/* SPDX-License-Identifier: MIT */
/*
 * trace.h - the trace that a loader writes. The consumer adds up what it delivers and queues one record for each step;
 * the producer writes the records to the file, so that next() makes no system call. Without a producer thread the
 * consumer writes them itself.
 */
#ifndef TOKMAP_LOADER_TRACE_H
#define TOKMAP_LOADER_TRACE_H

#include <stdbool.h>

#include "format/trace_file.h"

struct trace;

/* Opens the file and begins a section in it. Statuses: those of trace_writer_open(). */
enum tokmap_status trace_open(struct trace **trace, const char *path, const struct trace_header *header,
                              struct tokmap_error *error);
/* Writes what is queued, if it can, and closes the file. drop: writes nothing. Accepts NULL. */
void trace_close(struct trace *trace, bool drop);

/* Begins another section, after everything that is queued: the loader continues elsewhere. Forgets an unfinished step.
 * For the consumer. Statuses: OK, ERROR_IO; after a failure it can be called again. */
enum tokmap_status trace_begin(struct trace *trace, const struct trace_header *header, struct tokmap_error *error);

/* ---- by the consumer ---- */

/* Returns whether trace_add() can be called: there is room, and no write has failed. */
bool trace_is_ready(const struct trace *trace);

/* Adds a batch. last: it is the step's last one. */
void trace_add(struct trace *trace, uint64_t step, uint64_t sum, bool last);

/* Writes what is queued, at the end of the run: another loader may write to the file until the next trace_begin().
 * Statuses: OK, ERROR_IO. */
enum tokmap_status trace_end(struct trace *trace, struct tokmap_error *error);

/* ---- by any of the two threads ---- */

/* Writes what is queued. Statuses: OK, ERROR_IO. */
enum tokmap_status trace_flush(struct trace *trace, struct tokmap_error *error);

/* Does the same, if there is anything to write. A failure is kept: trace_is_ready() returns false until trace_flush()
 * has succeeded. */
void trace_drain(struct trace *trace);

#endif
