/* SPDX-License-Identifier: MIT */
/*
 * driver_calls.h - counts and times the calls of the CUDA driver that a loader makes, in both of its threads.
 *
 * driver_calls_begin() replaces functions in the driver's table, through which the library makes all its calls, by
 * functions that count, look at the clock, and call the driver. So what is counted is what the loader does, not a copy
 * of it. All functions that a batch could call are replaced; those for finding devices and loading modules are not.
 */
#ifndef TOKMAP_BENCH_HARNESS_DRIVER_CALLS_H
#define TOKMAP_BENCH_HARNESS_DRIVER_CALLS_H

#include "cuda/cuda_driver.h"
#include "harness.h"

/* The calls of one thread between driver_calls_count(true) and driver_calls_count(false). */
struct driver_calls {
    uint64_t calls;
    uint64_t waiting; /* of these, calls that allocate, free, or wait for the GPU. The producer's waits for a copy that
                         a lap of the ring ago was enqueued are not among them */
    double us;        /* the time that they take: for each function its median, times its calls */
};

/* Begins on a driver that no other thread uses yet. The calling thread is the consumer, all others are producers.
 * Returns CLI_DONE, or CLI_FAILED after a message. In either case call driver_calls_end(), which restores the table, at
 * a time when no other thread uses the driver. A second call of it does nothing. */
int driver_calls_begin(struct bench *bench, const struct cuda_driver *driver);
void driver_calls_end(void);

/* Counts from now on, beginning at zero, or does not count any more. The consumer's calls count only between
 * driver_calls_inside(true) and driver_calls_inside(false), so that the calls of the benchmark itself do not. */
void driver_calls_count(bool count);
void driver_calls_inside(bool inside);

/* Fills in what was counted. To be called once the other threads make no more calls. */
void driver_calls_read(struct driver_calls *consumer, struct driver_calls *producer);

#endif
