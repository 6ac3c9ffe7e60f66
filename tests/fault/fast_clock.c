/* SPDX-License-Identifier: MIT */
/*
 * fast_clock.c - lets the clocks of a program run faster, so that a test of long waits takes seconds. It is preloaded
 * (LD_PRELOAD) into programs that are built without sanitizers.
 *
 *     FAST_CLOCK   how many times as fast, as a whole number
 *
 * Only what the program reads from a clock is changed. A call that sleeps for a time takes that time.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int64_t begun[16], times;
    if (syscall(SYS_clock_gettime, clock, now))
        return -1;
    if (clock < 0 || clock >= 16 || clock == CLOCK_REALTIME)
        return 0;
    const int64_t real = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec;
    int64_t unknown = 0;
    if (!__atomic_load_n(&times, __ATOMIC_RELAXED))
        __atomic_store_n(&times, atoll(getenv("FAST_CLOCK") ? getenv("FAST_CLOCK") : "1"), __ATOMIC_RELAXED);
    (void)__atomic_compare_exchange_n(&begun[clock], &unknown, real, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    const int64_t first = __atomic_load_n(&begun[clock], __ATOMIC_RELAXED);
    const int64_t fast = first + (real - first) * __atomic_load_n(&times, __ATOMIC_RELAXED);
    now->tv_sec = fast / 1000000000;
    now->tv_nsec = fast % 1000000000;
    return 0;
}
