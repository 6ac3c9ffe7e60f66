/* SPDX-License-Identifier: MIT */
/* memory_peak.h - the most memory that this process has used so far. */
#ifndef TESTS_SUPPORT_MEMORY_PEAK_H
#define TESTS_SUPPORT_MEMORY_PEAK_H

#include <stdint.h>
#include <sys/resource.h>

/* In bytes of RAM; 0 if unknown. */
static inline uint64_t memory_peak(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? 0 : (uint64_t)usage.ru_maxrss * 1024;
}

#endif
