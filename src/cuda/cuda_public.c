/* SPDX-License-Identifier: MIT */
/*
 * cuda_public.c - the functions of tokmap/cuda.h that need no loader.
 *
 * Each function opens the device and closes it before it returns. Memory and streams that the caller keeps must keep
 * the primary context alive, so the function that creates one skips the close: the driver's count of uses of the
 * context stays one higher. A record of what was made keeps the open device, and the function that frees it closes the
 * device.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/struct_copy.h"
#include "cuda_device.h"
#include "platform/os.h"
#include "tokmap/cuda.h"

/* ---- records of what was made ---- */

/* Records hold the GPU memory and the streams that were made for the program, each with its context. They are in lists
 * by a part of the address, with the oldest first.
 *
 * A reset of the device frees them all. Then a handle points to nothing, and the driver can give the same address to
 * somebody else. So freeing needs to know whether the context still exists in which the thing was made:
 *
 *   memory_new()             address A, in context 7
 *   reset of the device      A is free
 *   another library          allocates in context 8 and gets A
 *   memory_free(A)           A belongs to context 7, which is gone: nothing is freed
 *
 * Drivers before CUDA 12.0 do not number their contexts. With them, the context always seems to exist.
 */
#define LISTS 256u

struct owned {
    struct cuda_device device;
    uint64_t context; /* its number; 0: unknown */
    const void *made;
    uint32_t process;
    struct owned *next;
};

static struct owned *lists[LISTS]; /* with os_process_lock() */

static struct owned **list_of(const void *made)
{
    const uintptr_t address = (uintptr_t)made; /* memory is aligned to 256 bytes or more, and a handle to 16 */
    return &lists[(address >> 4 ^ address >> 12 ^ address >> 20) % LISTS];
}

/* Records an address or a handle that was made in the context of an open device, and that the device stays open for.
 * Returns false if there is no memory for that. */
static bool owned_add(const struct cuda_device *device, const void *made)
{
    struct owned *owned = calloc(1, sizeof *owned);
    if (!owned)
        return false;
    owned->device = *device;
    owned->context = cuda_context_number(device);
    owned->made = made;
    owned->process = os_process_id();
    os_process_lock();
    struct owned **last = list_of(made);
    while (*last)
        last = &(*last)->next;
    *last = owned;
    os_process_unlock();
    return true;
}

/* Removes the record. Of two with the same address it is the older one, because the address was given out again only
 * after a reset had freed that. In a child that was forked, the records of the parent do not exist.
 *   device    receives the device, which the caller closes
 *   exists    receives whether the context still exists, so that something is to be freed
 * Returns false if there is no such record. */
static bool owned_remove(const void *made, struct cuda_device *device, bool *exists)
{
    const uint32_t own = os_process_id();
    os_process_lock();
    struct owned **at = list_of(made), *owned;
    while (*at && !((*at)->made == made && (*at)->process == own))
        at = &(*at)->next;
    owned = *at;
    if (owned)
        *at = owned->next;
    os_process_unlock();
    if (!owned)
        return false;
    *device = owned->device;
    *exists = cuda_context_exists(&owned->device, owned->context);
    free(owned);
    return true;
}

/* ---- the functions ---- */

static enum tokmap_status argument_is_null(struct tokmap_error *error, const char *name)
{
    return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "%s is NULL; pass a pointer", name);
}

enum tokmap_status tokmap_cuda_probe(struct tokmap_cuda_info *info, struct tokmap_error *error)
{
    const struct cuda_driver *driver;
    struct tokmap_cuda_info found = {0};
    enum tokmap_status status = struct_size_check(info, sizeof found, "tokmap_cuda_info", error);
    if (!status)
        status = cuda_driver_open(&driver, error);
    if (!status)
        status = cuda_driver_devices(driver, &found.devices, error);
    if (status)
        return status;
    found.driver_version = driver->version;
    memcpy(found.path, driver->path, sizeof found.path);
    return struct_copy_out(info, &found, sizeof found, "tokmap_cuda_info", error);
}

enum tokmap_status tokmap_cuda_device(int ordinal, struct tokmap_cuda_device_info *info, struct tokmap_error *error)
{
    struct cuda_device device;
    struct tokmap_cuda_device_info found = {0};
    size_t memory = 0;
    enum tokmap_status status = struct_size_check(info, sizeof found, "tokmap_cuda_device_info", error);
    if (!status)
        status = cuda_device_find_number(&device, ordinal, error);
    if (status)
        return status;
    const struct cuda_driver *driver = device.driver;
    int result = driver->device_get_name(found.name, sizeof found.name, device.handle);
    if (!result)
        result = driver->device_get_attribute(&found.capability_major, CUDA_DEVICE_CAPABILITY_MAJOR, device.handle);
    if (!result)
        result = driver->device_get_attribute(&found.capability_minor, CUDA_DEVICE_CAPABILITY_MINOR, device.handle);
    if (!result)
        result = driver->device_total_mem(&memory, device.handle);
    if (result)
        return cuda_driver_error(driver, TOKMAP_ERROR_DEVICE, result, error, "reading the properties of the GPU");
    found.numa_node = cuda_device_node(&device);
    found.memory = memory;
    return struct_copy_out(info, &found, sizeof found, "tokmap_cuda_device_info", error);
}

/* Opens the device and makes its context current. */
static enum tokmap_status enter(struct cuda_device *device, struct cuda_entered *entered, const char *name,
                                struct tokmap_error *error)
{
    enum tokmap_status status = cuda_device_open(device, name, error);
    if (status)
        return status;
    int result = cuda_enter(device, entered);
    if (!result)
        return TOKMAP_OK;
    cuda_device_close(device);
    return cuda_driver_error(device->driver, TOKMAP_ERROR_DEVICE, result, error, "making the GPU's context current");
}

/* Undoes enter(), and turns the driver's result into a status.
 *   keep    true: on success the device is not closed, because the caller keeps something in its context
 *   doing   what failed, if it did */
static enum tokmap_status leave(const struct cuda_device *device, const struct cuda_entered *entered, int result,
                                bool keep, const char *doing, struct tokmap_error *error)
{
    assert(device->context);
    cuda_leave(device, entered);
    if (!keep || result)
        cuda_device_close(device);
    if (!result)
        return TOKMAP_OK;
    enum tokmap_status status = result == CUDA_OUT_OF_MEMORY ? TOKMAP_ERROR_MEMORY : TOKMAP_ERROR_DEVICE;
    return cuda_driver_error(device->driver, status, result, error, doing);
}

enum tokmap_status tokmap_cuda_memory_new(const char *device, uint64_t bytes, void **memory, struct tokmap_error *error)
{
    struct cuda_device gpu;
    struct cuda_entered entered;
    uint64_t address = 0;
    if (!memory)
        return argument_is_null(error, "memory");
    *memory = NULL;
    if (!bytes)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "bytes is 0; request at least 1 byte of device memory");
    enum tokmap_status status = enter(&gpu, &entered, device, error);
    if (status)
        return status;
    int result = gpu.driver->mem_alloc(&address, bytes);
    if (!result && !owned_add(&gpu, (void *)(uintptr_t)address)) {
        (void)gpu.driver->mem_free(address);
        result = CUDA_OUT_OF_MEMORY;
    }
    status = leave(&gpu, &entered, result, true, "allocating device memory", error);
    if (!status)
        *memory = (void *)(uintptr_t)address;
    return status;
}

void tokmap_cuda_memory_free(const char *device, void *memory)
{
    struct cuda_device gpu;
    struct cuda_entered entered;
    unsigned type;
    bool exists;
    (void)device; /* it is in the record */
    if (!memory || !owned_remove(memory, &gpu, &exists))
        return;
    if (exists && !cuda_enter(&gpu, &entered)) {
        /* A driver that cannot say whether it was reset knows at least that nothing is at the address any more. */
        if (gpu.driver->pointer_get_attribute(&type, CUDA_POINTER_MEMORY_TYPE, (uintptr_t)memory) != CUDA_INVALID_VALUE)
            (void)gpu.driver->mem_free((uintptr_t)memory);
        cuda_leave(&gpu, &entered);
    }
    cuda_device_close(&gpu); /* the use that tokmap_cuda_memory_new() left open */
}

enum tokmap_status tokmap_cuda_memory_read(const char *device, void *host, const void *memory, uint64_t bytes,
                                           struct CUstream_st *stream, struct tokmap_error *error)
{
    struct cuda_device gpu;
    struct cuda_entered entered;
    if (!host || !memory)
        return argument_is_null(error, host ? "memory" : "host");
    enum tokmap_status status = enter(&gpu, &entered, device, error);
    if (status)
        return status;
    int result = bytes ? gpu.driver->copy_to_host(host, (uintptr_t)memory, bytes, stream) : 0;
    if (!result)
        result = gpu.driver->stream_synchronize(stream);
    return leave(&gpu, &entered, result, false, "reading device memory", error);
}

enum tokmap_status tokmap_cuda_stream_new(const char *device, struct CUstream_st **stream, struct tokmap_error *error)
{
    struct cuda_device gpu;
    struct cuda_entered entered;
    if (!stream)
        return argument_is_null(error, "stream");
    *stream = NULL;
    enum tokmap_status status = enter(&gpu, &entered, device, error);
    if (status)
        return status;
    struct CUstream_st *made = NULL;
    int result = gpu.driver->stream_create(&made, CUDA_STREAM_NON_BLOCKING);
    if (!result && !owned_add(&gpu, made)) {
        (void)gpu.driver->stream_destroy(made);
        result = CUDA_OUT_OF_MEMORY;
    }
    status = leave(&gpu, &entered, result, true, "creating a stream", error);
    if (!status)
        *stream = made;
    return status;
}

void tokmap_cuda_stream_free(const char *device, struct CUstream_st *stream)
{
    struct cuda_device gpu;
    struct cuda_entered entered;
    bool exists;
    (void)device; /* it is in the record */
    if (cuda_stream_is_default(stream) || !owned_remove(stream, &gpu, &exists))
        return;
    if (exists && !cuda_enter(&gpu, &entered)) {
        (void)gpu.driver->stream_destroy(stream);
        cuda_leave(&gpu, &entered);
    }
    cuda_device_close(&gpu); /* the use that tokmap_cuda_stream_new() left open */
}

/* Finds out whether `waiting` is capturing a graph and `on` is not. A graph cannot wait for work outside of it, and the
 * attempt would invalidate the capture. Asking does not. */
static int leaves_capture(const struct cuda_driver *driver, struct CUstream_st *waiting, struct CUstream_st *on,
                          bool *leaves)
{
    int waiting_captures = 0, on_captures = 0, result = 0;
    if (driver->stream_is_capturing && !(result = driver->stream_is_capturing(waiting, &waiting_captures)) &&
        waiting_captures)
        result = driver->stream_is_capturing(on, &on_captures);
    *leaves = waiting_captures && !on_captures;
    return result;
}

enum tokmap_status tokmap_cuda_stream_wait(const char *device, struct CUstream_st *waiting, struct CUstream_st *on,
                                           struct tokmap_error *error)
{
    struct cuda_device gpu;
    struct cuda_entered entered;
    struct CUevent_st *event = NULL;
    bool leaves = false;
    enum tokmap_status status = enter(&gpu, &entered, device, error);
    if (status)
        return status;
    int result = leaves_capture(gpu.driver, waiting, on, &leaves);
    if (!result && leaves) {
        (void)leave(&gpu, &entered, 0, false, "", NULL);
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "the stream that is to wait is capturing a graph, and the stream that it would wait for is "
                         "not; make it wait before the capture begins");
    }
    if (!result)
        result = gpu.driver->event_create(&event, CUDA_EVENT_DISABLE_TIMING);
    if (!result) {
        result = gpu.driver->event_record(event, on);
        if (!result)
            result = gpu.driver->stream_wait_event(waiting, event, 0);
        (void)gpu.driver->event_destroy(event); /* the driver frees it once it has completed */
    }
    return leave(&gpu, &entered, result, false, "making a stream wait for another", error);
}

enum tokmap_status tokmap_cuda_stream_synchronize(const char *device, struct CUstream_st *stream,
                                                  struct tokmap_error *error)
{
    struct cuda_device gpu;
    struct cuda_entered entered;
    enum tokmap_status status = enter(&gpu, &entered, device, error);
    if (status)
        return status;
    return leave(&gpu, &entered, gpu.driver->stream_synchronize(stream), false, "waiting for a stream", error);
}
