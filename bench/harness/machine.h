/* SPDX-License-Identifier: MIT */
/* machine.h - the machine on which something was measured: what it is, and how busy other programs kept it. */
#ifndef TOKMAP_BENCH_HARNESS_MACHINE_H
#define TOKMAP_BENCH_HARNESS_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include "harness.h"

/* Writes processor model, number of processors, memory, type of the file system that holds `folder`, and kernel
 * version. Leaves out what the system does not report. Returns text. */
const char *machine_name(const char *folder, char *text, size_t capacity);
/* Does the same, with the load average. */
const char *machine_line(const char *folder, char *text, size_t capacity);

/* Returns how many KiB the block device below a path reads ahead; NAN if it is unknown or there is no such device. */
double machine_readahead(const char *path);

/* Reads a small file of the kernel, of which capacity - 1 bytes are kept. A file that cannot be read yields "". */
void machine_file(const char *path, char *text, size_t capacity);

/* Returns the memory of this process that is its own, in MiB: without pages of files, which the kernel can take back;
 * NAN if it is unknown. */
double machine_own_mib(void);

/* The times of the machine's processors so far, in seconds, from /proc. */
struct machine_times {
    double all, busy, steal; /* of all processors together; busy: in programs and the kernel */
    double own;              /* in this process and in its children that have ended */
    double load;             /* the load average of the last minute */
    uint64_t clock_ns;
    bool known; /* false where /proc does not report them */
};
void machine_times(struct machine_times *times);

/* Returns the share of all processors (0 to 1) that other programs used between two moments, and the share that the
 * hypervisor took; NAN where that is unknown, and for less than 0.2 seconds, since the kernel counts in hundredths of a
 * second. */
double machine_others(const struct machine_times *from, const struct machine_times *to);
double machine_steal(const struct machine_times *from, const struct machine_times *to);

/* Reports how busy the machine was since `begin`, when the case started: with --json as the results others_percent,
 * steal_percent, and load_average (at the beginning), else as a line on standard output. Prints a warning if that is
 * enough to change what the case measured. */
void machine_report(struct bench *bench, const struct machine_times *begin);

#endif
