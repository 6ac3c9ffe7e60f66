/* machine.h - one line that says what was measured on. */
#ifndef TOKMAP_BENCH_HARNESS_MACHINE_H
#define TOKMAP_BENCH_HARNESS_MACHINE_H

#include <stddef.h>

/* Processor, number of processors, memory, the file system that holds `folder`, kernel. Parts that are not known are
 * left out. Returns text. */
const char *machine_line(const char *folder, char *text, size_t capacity);

#endif
