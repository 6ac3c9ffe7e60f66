/* child.h - copies of this program that measure what must be measured in a process of its own. */
#ifndef TOKMAP_BENCH_HARNESS_CHILD_H
#define TOKMAP_BENCH_HARNESS_CHILD_H

#include "harness.h"
#include "platform/process.h"
#include "platform/process.h"

/* Runs `path` with arguments (argv from [1], NULL last; at most 30) to its end and keeps the start of what it printed.
 * *started_ns: the clock just before the start. Talks about a program that failed. CLI_DONE or CLI_FAILED. */
int child_run(struct bench *bench, const char *path, const char *const *arguments, char *output, size_t capacity,
              uint64_t *started_ns);

/* Waits for the end of a child; a signal to us ends it too. 0 or an errno. */
int child_wait(struct os_child *child, int *exit_status);

/* The number after "name=" in a child's output; NAN if it is not there. */
double child_number(const char *output, const char *name);

#endif
