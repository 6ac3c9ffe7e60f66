/* SPDX-License-Identifier: MIT */
/* process_lock.c - see process_lock.h. */
#include "process_lock.h"

#include <stdbool.h>

#include "platform/os.h"

void process_lock(uint32_t *lock)
{
    const uint32_t own = os_process_id();
    for (uint32_t tries = 1;; tries++) {
        uint32_t holder = 0;
        if (__atomic_compare_exchange_n(lock, &holder, own, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
        if (holder != own && __atomic_compare_exchange_n(lock, &holder, own, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
        if (tries % 64)
            os_relax();
        else
            os_sleep_ns(10000);
    }
}

void process_unlock(uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}
