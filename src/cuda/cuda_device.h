/*
 * cuda_device.h - a GPU held open: its driver and its primary context.
 *
 * Every use of the device stands between cuda_enter() and cuda_leave(), which make the context current on the calling
 * thread and leave the thread's own as it was. The thread also works in the relaxed capture mode in between: none of our
 * calls is one that a graph captured elsewhere in the process would have to know of, and none may spoil it.
 */
#ifndef TOKMAP_CUDA_CUDA_DEVICE_H
#define TOKMAP_CUDA_CUDA_DEVICE_H

#include <stdbool.h>

#include "cuda_driver.h"

struct cuda_device {
    const struct cuda_driver *driver;
    struct CUctx_st *context;
    int ordinal; /* the N of cuda:N */
    int handle;  /* the driver's name for it */
};

struct cuda_entered {
    bool pushed;
    int capture_mode; /* -1: left as it was */
};

/* True for NULL and "cpu". */
bool cuda_device_is_host(const char *device);
/* Opens the driver and finds which device is meant; retains nothing. Statuses: OK, ERROR_NO_DEVICE, ERROR_ARGUMENT,
 * ERROR_MEMORY. */
enum tokmap_status cuda_device_find(struct cuda_device *device, const char *name, struct tokmap_error *error);
/* The same by number. */
enum tokmap_status cuda_device_find_number(struct cuda_device *device, int ordinal, struct tokmap_error *error);
/* Finds it by name and retains the primary context. Statuses: those, and ERROR_DEVICE. */
enum tokmap_status cuda_device_open(struct cuda_device *device, const char *name, struct tokmap_error *error);
void cuda_device_close(const struct cuda_device *device);
/* The host's NUMA node nearest to a device, -1 if unknown. */
int cuda_device_node(const struct cuda_device *device);

/* Result of the driver; leave only after success. */
int cuda_enter(const struct cuda_device *device, struct cuda_entered *entered);
void cuda_leave(const struct cuda_device *device, const struct cuda_entered *entered);

/* NULL and the driver's two names for a default stream belong to the context that is current. */
static inline bool cuda_stream_is_default(const struct CUstream_st *stream)
{
    return (uintptr_t)stream <= 2;
}

#endif
