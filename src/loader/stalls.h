/*
 * stalls.h - when options.alarm is called: calls of next() are counted in groups of alarm_calls. A group in which
 * alarm_percent percent or more had to wait raises the alarm, unless the group before it did, too. Used by the thread
 * that calls next().
 */
#ifndef TOKMAP_LOADER_STALLS_H
#define TOKMAP_LOADER_STALLS_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

struct stalls {
    bool opened;                      /* the first call, which finds an empty ring, was passed */
    bool above;                       /* the last group was above the threshold */
    uint64_t calls, stalled, wait_ns; /* of the group at hand */
    uint64_t alarms;                  /* raised; accessed atomically */
};

/* Counts a call that delivered a batch of `step`, and that waited `ns` for its slot (0: it was filled). Returns true,
 * and fills *stall, if the alarm is raised. */
bool stalls_count(struct stalls *stalls, const struct tokmap_loader_options *options, uint64_t step, uint64_t ns,
                  struct tokmap_stall *stall);

/* The ring is empty again, because the loader has moved: the next call is passed. */
void stalls_restart(struct stalls *stalls);

#endif
