/* SPDX-License-Identifier: MIT */
/*
 * cuda_device.h - an open GPU: its driver and its primary context.
 *
 * Every use of the device is enclosed by cuda_enter() and cuda_leave(). Between them the device's context is current on
 * the calling thread; afterwards the thread has the context that it had before. The thread also works in the relaxed
 * capture mode in between, because another thread may be capturing a CUDA graph: in the default mode some of our calls
 * would be refused and would invalidate that capture. A thread that works for one device only, as the producer does,
 * calls cuda_stay() once, after which entering and leaving that device are free.
 *
 * A struct cuda_device does not change once it is open, so any number of threads may use it.
 */
#ifndef TOKMAP_CUDA_CUDA_DEVICE_H
#define TOKMAP_CUDA_CUDA_DEVICE_H

#include <stdbool.h>

#include "cuda_driver.h"

struct cuda_device {
    const struct cuda_driver *driver;
    struct CUctx_st *context; /* NULL: found, but not open */
    int ordinal;              /* N of "cuda:N" */
    int handle;               /* of the device in the driver */
};

/* The context that cuda_leave() restores. */
struct cuda_entered {
    bool pushed;
    int capture_mode; /* the thread's mode before; -1: not changed */
};

/* Returns true for the names that mean the host: NULL and "cpu". */
bool cuda_device_is_host(const char *device);

/* Opens the driver and finds the device with this name, "cuda:N" or "cuda". Does not open its context.
 * Statuses: OK, ERROR_NO_DEVICE, ERROR_ARGUMENT (the name is not one of a GPU), ERROR_MEMORY. */
enum tokmap_status cuda_device_find(struct cuda_device *device, const char *name, struct tokmap_error *error);

/* Does the same for device number `ordinal`. Statuses: OK, ERROR_NO_DEVICE, ERROR_MEMORY. */
enum tokmap_status cuda_device_find_number(struct cuda_device *device, int ordinal, struct tokmap_error *error);

/* Finds the device with this name and retains its primary context, until cuda_device_close().
 * Statuses: OK, ERROR_NO_DEVICE, ERROR_ARGUMENT, ERROR_MEMORY, ERROR_DEVICE. */
enum tokmap_status cuda_device_open(struct cuda_device *device, const char *name, struct tokmap_error *error);

/* Releases the primary context, once. Does nothing if the device is not open. */
void cuda_device_close(const struct cuda_device *device);

/* Returns the number of the host's NUMA node that is nearest to the device, or -1 if it is unknown. */
int cuda_device_node(const struct cuda_device *device);

/* Returns a number that the context of an open device has for as long as it exists, and that no other context of this
 * process ever has. 0: the context was destroyed, by a reset of the device or by the end of the driver; or the driver
 * is older than CUDA 12.0 and has no such numbers. */
uint64_t cuda_context_number(const struct cuda_device *device);

/* Returns whether the context of an open device is still the one that had this number; true if the number is 0, or if
 * the driver cannot say, as after a fault on the device. */
bool cuda_context_exists(const struct cuda_device *device, uint64_t number);

/* Returns whether the device reads all memory of the host through the host's page tables, coherently, as GPUs do that
 * share a package with the processor. */
bool cuda_device_reads_host(const struct cuda_device *device);

/* Makes the context of an open device current. Returns the driver's result; 0 is success. */
int cuda_enter(const struct cuda_device *device, struct cuda_entered *entered);

/* Makes the context of an open device current on this thread for good, with the relaxed capture mode. cuda_enter() and
 * cuda_leave() of a device with the same context then make no call of the driver on this thread. For a thread of our
 * own that runs no code of the program and that ends before the device is closed. On failure nothing changes. */
void cuda_stay(const struct cuda_device *device);

/* Restores what was current before. Call it once after each successful cuda_enter(), on the same thread. */
void cuda_leave(const struct cuda_device *device, const struct cuda_entered *entered);

/* Returns true for NULL and the driver's two special handles, 1 and 2. They are default streams, which belong to
 * whatever context is current. */
static inline bool cuda_stream_is_default(const struct CUstream_st *stream)
{
    return (uintptr_t)stream <= 2;
}

#endif
