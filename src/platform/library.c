/* SPDX-License-Identifier: MIT */
#include "library.h"

#include <stdio.h>
#include <string.h>

#include "os.h"

static bool open_and_find(const struct library *library, char *reason, size_t capacity)
{
    void *handle = NULL;
    char said[LIBRARY_REASON], said_of_other[LIBRARY_REASON];
    if (!os_library_open(library->file, &handle, said, sizeof said) &&
        (!library->other || !os_library_open(library->other, &handle, said_of_other, sizeof said_of_other))) {
        (void)snprintf(reason, capacity, "%s", said);
        return false;
    }
    for (size_t i = 0; i < library->count; i++) {
        void *symbol = os_library_symbol(handle, library->names[i]);
        if (!symbol) {
            (void)snprintf(reason, capacity, "%s has no function %s", library->file, library->names[i]);
            return false;
        }
        memcpy((char *)library->functions + i * sizeof symbol, &symbol, sizeof symbol);
    }
    if (!library->start || library->start())
        return true;
    (void)snprintf(reason, capacity, "%s does not start", library->file);
    return false;
}

/* Loads the library once. The thread that moves the state from UNOPENED to OPENING_BY(this process) loads the library,
 * and others wait for it. A thread that sees the id of another process is in a child that was forked meanwhile, and
 * loads the library itself. */
bool library_load(struct library *library, char *reason, size_t capacity)
{
    uint32_t seen = __atomic_load_n(&library->state, __ATOMIC_ACQUIRE);
    if (seen == LIBRARY_READY)
        return true;
    const uint32_t ours = LIBRARY_OPENING_BY(os_process_id());
    while (seen != LIBRARY_READY) {
        if (seen == ours) {
            os_word_wait(&library->state, ours);
            seen = __atomic_load_n(&library->state, __ATOMIC_ACQUIRE);
        } else if (__atomic_compare_exchange_n(&library->state, &seen, ours, false, __ATOMIC_ACQUIRE,
                                               __ATOMIC_ACQUIRE)) {
            seen = open_and_find(library, reason, capacity) ? LIBRARY_READY : LIBRARY_UNOPENED;
            __atomic_store_n(&library->state, seen, __ATOMIC_RELEASE);
            os_word_wake(&library->state);
            if (seen != LIBRARY_READY)
                return false;
        }
    }
    return true;
}
