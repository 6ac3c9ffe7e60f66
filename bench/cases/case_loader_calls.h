/* SPDX-License-Identifier: MIT */
/*
 * case_loader_calls.h - parts of the case `loader --device`: the driver's calls that a batch needs, and the opening of
 * the first loader of a process; and what they share with the rest of that case.
 *
 * Functions that return an int return CLI_DONE, or CLI_FAILED after a message.
 */
#ifndef TOKMAP_BENCH_CASES_CASE_LOADER_CALLS_H
#define TOKMAP_BENCH_CASES_CASE_LOADER_CALLS_H

#include "harness/gpu.h"
#include "harness/reader.h"

/* Opens a loader of inputs and targets over the run, which delivers to the GPU. ring_bytes: 0 for the default. */
int device_reader_open(struct bench *bench, const struct gpu *gpu, const struct tokmap_run *run, uint64_t ring_bytes,
                       struct reader *reader);
/* Waits until the stream is empty and the ring is full, but for at most a second. */
int device_reader_idle(struct bench *bench, struct gpu *gpu, const struct reader *reader);

/* The calls of a batch, and the time that they take. */
struct loader_calls {
    struct series producer, consumer, waiting; /* calls a batch; waiting: of both, those that wait for the GPU */
    struct series producer_us, consumer_us, both_us;
};
/* Counts them while the reader's loader is the only one. driver_calls_begin() was called before that loader was opened.
 * After a success the driver's table is as before; after a failure call driver_calls_end() once the loader is closed.
 */
int loader_calls_measure(struct bench *bench, struct gpu *gpu, struct reader *reader, struct loader_calls *calls);
void loader_calls_report(struct bench *bench, const struct loader_calls *calls);

#define OPEN_BYTES ((uint64_t)64 << 20) /* ring of a loader whose opening is timed */

/* The time of opening the first loader of a process in which the GPU's context exists, in ms, with no kernel in the
 * driver's cache. compiled: the driver does not use the machine code that the library contains. */
struct first_opening {
    struct series machine_code, compiled;
};
/* Measures it in copies of this program, and what such a copy does (bench->options.child is FIRST_OPENING_CHILD). */
int first_opening_measure(struct bench *bench, struct first_opening *opening);
int first_opening_child(struct bench *bench);
void first_opening_report(struct bench *bench, const struct first_opening *opening);
#define FIRST_OPENING_CHILD "first-opening"

#endif
