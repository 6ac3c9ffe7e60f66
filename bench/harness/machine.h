/* machine.h - a line of text that describes the machine on which something was measured. */
#ifndef TOKMAP_BENCH_HARNESS_MACHINE_H
#define TOKMAP_BENCH_HARNESS_MACHINE_H

#include <stddef.h>

/* Writes processor model, number of processors, memory, type of the file system that holds `folder`, and kernel
 * version. Leaves out what the system does not report. Returns text. */
const char *machine_line(const char *folder, char *text, size_t capacity);

#endif
