/* entries.h - the beginning and end of every function of the emulated driver. */
#ifndef TESTS_CUDA_SOFTWARE_ENTRIES_H
#define TESTS_CUDA_SOFTWARE_ENTRIES_H

#include "software.h"

/* What a function needs: nothing; that cuInit() was called; a current context that has not failed; or a current
 * context, because the function frees something. */
enum needs { NOTHING, INITIALIZED, CONTEXT, RELEASES };

/* Counts the call and returns whether it fails before it begins. If it returns 0, the lock is held, and leave()
 * releases it. Calls that free something are also executed after the device has failed. */
CUresult enter(enum cuda_entry entry, enum needs needs);

/* Returns whether a capture forbids a call. Such a call invalidates the capture. */
bool breaks_capture(enum cuda_entry entry);

/* Calls enter(), and returns from the function if it fails. */
#define ENTER(name, needs)                                                                                             \
    do {                                                                                                               \
        CUresult entered_ = enter(ENTRY_##name, needs);                                                                \
        if (entered_)                                                                                                  \
            return entered_;                                                                                           \
    } while (0)

/* Releases the lock and returns `result`. */
CUresult leave(CUresult result);

/* Ends a call that frees something: the same, but after the device has failed a success becomes that failure. */
CUresult leave_released(CUresult result);

#endif
