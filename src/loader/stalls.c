/* stalls.c - see stalls.h. */
#include "stalls.h"

#define CALLS 100
#define PERCENT 10

bool stalls_count(struct stalls *stalls, const struct tokmap_loader_options *options, uint64_t step, uint64_t ns,
                  struct tokmap_stall *stall)
{
    const uint64_t calls = options->alarm_calls ? options->alarm_calls : CALLS;
    const uint64_t percent = options->alarm_percent ? options->alarm_percent : PERCENT;
    if (!stalls->opened) {
        stalls->opened = true;
        return false;
    }
    stalls->calls++;
    stalls->stalled += ns != 0;
    stalls->wait_ns += ns;
    if (stalls->calls < calls)
        return false;
    const bool before = stalls->above;
    stalls->above = stalls->stalled * 100 >= percent * calls;
    *stall = (struct tokmap_stall){sizeof *stall, step, calls, stalls->stalled, stalls->wait_ns};
    stalls->calls = stalls->stalled = stalls->wait_ns = 0;
    if (!stalls->above || before)
        return false;
    __atomic_store_n(&stalls->alarms, stalls->alarms + 1, __ATOMIC_RELAXED);
    return true;
}

void stalls_restart(struct stalls *stalls)
{
    stalls->opened = false;
    stalls->calls = stalls->stalled = stalls->wait_ns = 0;
}
