/* SPDX-License-Identifier: MIT */
/*
 * two_threads.h - what a second thread adds on this machine, for two loops that share nothing: one that works in
 * registers, and one that reads at random addresses of a table of its own. No program that encodes can expect more from
 * a second thread than these loops get.
 *
 * The second loop is there because two virtual processors usually share a level of cache, and often also with other
 * machines: a table that fits in that level alone may not fit beside another one.
 *
 * Thread rule: call these functions from one thread, while nothing else of the program runs.
 */
#ifndef TOKMAP_BENCH_HARNESS_TWO_THREADS_H
#define TOKMAP_BENCH_HARNESS_TWO_THREADS_H

#include <stdint.h>

/* Sets *ratio to the work of two threads divided by the work of one in the same time: 2 if the second thread adds all
 * of a processor. It is below 2 if other programs run, or if both threads share a core. Takes about 0.1 s. Returns 0,
 * or an errno of starting a thread. */
int two_threads_compute(double *ratio);

/* Does the same with random reads of 8 bytes from a table of table_bytes, a power of two of at least 4096, in memory
 * of huge pages where the kernel has them. Each thread has its own table, and begins when both tables are filled. Takes
 * about 0.2 s. Returns 0, ENOMEM, or an errno of starting a thread. */
int two_threads_look_up(uint64_t table_bytes, double *ratio);

#endif
