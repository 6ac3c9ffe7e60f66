/* SPDX-License-Identifier: MIT */
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

/* The same for a call that is given a stream, or an event (NULL: none). If the context is gone, the use of a handle
 * that is gone with it is a violation, because the real one is a pointer that dangles. */
CUresult enter_with(enum cuda_entry entry, enum needs needs, CUstream stream, CUevent event);

/* Returns whether a stream of the context captures, and invalidates those captures. */
bool capture_in(CUcontext context);

/* Returns whether the stream is the legacy one, and a blocking stream of its context captures: then the stream cannot
 * be used, and using it invalidates the captures. */
bool capture_implied(CUstream stream);

/* Calls enter(), and returns from the function if it fails. */
#define ENTER(name, needs)                                                                                             \
    do {                                                                                                               \
        CUresult entered_ = enter(ENTRY_##name, needs);                                                                \
        if (entered_)                                                                                                  \
            return entered_;                                                                                           \
    } while (0)

#define ENTER_WITH(name, needs, stream, event)                                                                         \
    do {                                                                                                               \
        CUresult entered_ = enter_with(ENTRY_##name, needs, stream, event);                                            \
        if (entered_)                                                                                                  \
            return entered_;                                                                                           \
    } while (0)

/* Releases the lock and returns `result`. */
CUresult leave(CUresult result);

/* Ends a call that frees something: the same, but after the device has failed a success becomes that failure. */
CUresult leave_released(CUresult result);

#endif
