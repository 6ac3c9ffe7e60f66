/* SPDX-License-Identifier: MIT */
#include "cuda_device.h"

#include <assert.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"
#include "text/decimal.h"

bool cuda_device_is_host(const char *device)
{
    return !device || !strcmp(device, "cpu");
}

enum { CURRENT_DEVICE = -1, NOT_A_DEVICE = -2 };

/* Returns N of "cuda:N", at most 999999, or CURRENT_DEVICE for "cuda", or NOT_A_DEVICE. */
static int parse_name(const char *device)
{
    uint64_t number;
    if (!device || strncmp(device, "cuda", 4))
        return NOT_A_DEVICE;
    if (!device[4])
        return CURRENT_DEVICE;
    if (device[4] != ':' || !decimal_parse(device + 5, strlen(device + 5), &number) || number > 999999)
        return NOT_A_DEVICE;
    return (int)number;
}

/* Returns the number of the device of the calling thread's current context, or 0 if no context is current. */
static int current_device(const struct cuda_driver *driver)
{
    struct CUctx_st *context = NULL;
    int wanted, handle, devices;
    if (driver->device_get_count(&devices) || driver->ctx_get_current(&context) || !context ||
        driver->ctx_get_device(&wanted))
        return 0;
    for (int i = 0; i < devices; i++)
        if (!driver->device_get(&handle, i) && handle == wanted)
            return i;
    return 0;
}

/* Finds the handle of a device. device->driver is set. */
static enum tokmap_status find_handle(struct cuda_device *device, int ordinal, struct tokmap_error *error)
{
    const struct cuda_driver *driver = device->driver;
    int devices;
    enum tokmap_status status = cuda_driver_devices(driver, &devices, error);
    if (status)
        return status;
    device->ordinal = ordinal;
    if (ordinal < 0 || ordinal >= devices)
        return error_set(error, TOKMAP_ERROR_NO_DEVICE, NULL, TOKMAP_NO_OFFSET,
                         "device cuda:%d does not exist; the number of devices that this process may use is %d, and "
                         "they are numbered from cuda:0",
                         ordinal, devices);
    int result = driver->device_get(&device->handle, ordinal);
    return result ? cuda_driver_error(driver, TOKMAP_ERROR_NO_DEVICE, result, error, "finding the GPU") : TOKMAP_OK;
}

enum tokmap_status cuda_device_find_number(struct cuda_device *device, int ordinal, struct tokmap_error *error)
{
    memset(device, 0, sizeof *device);
    enum tokmap_status status = cuda_driver_open(&device->driver, error);
    return status ? status : find_handle(device, ordinal, error);
}

enum tokmap_status cuda_device_find(struct cuda_device *device, const char *name, struct tokmap_error *error)
{
    int number = parse_name(name);
    memset(device, 0, sizeof *device);
    if (number == NOT_A_DEVICE)
        return error_set(
            error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
            "\"%.40s\" is not the name of a device; use \"cuda:0\", \"cuda:1\", and so on, or \"cuda\" for "
            "the current GPU; a loader that delivers on the host takes \"cpu\"",
            name ? name : "");
    enum tokmap_status status = cuda_driver_open(&device->driver, error);
    if (status)
        return status;
    return find_handle(device, number == CURRENT_DEVICE ? current_device(device->driver) : number, error);
}

enum tokmap_status cuda_device_open(struct cuda_device *device, const char *name, struct tokmap_error *error)
{
    enum tokmap_status status = cuda_device_find(device, name, error);
    if (status)
        return status;
    int result = device->driver->primary_retain(&device->context, device->handle);
    if (!result)
        return TOKMAP_OK;
    device->context = NULL;
    return cuda_driver_error(device->driver, result == CUDA_OUT_OF_MEMORY ? TOKMAP_ERROR_MEMORY : TOKMAP_ERROR_DEVICE,
                             result, error, "opening the primary context of the GPU");
}

void cuda_device_close(const struct cuda_device *device)
{
    if (device->context)
        (void)device->driver->primary_release(device->handle);
}

int cuda_device_node(const struct cuda_device *device)
{
    const struct cuda_driver *driver = device->driver;
    int node, domain, bus, slot;
    /* Drivers answer -1 where the firmware does not say; the kernel may know more. */
    if (!driver->device_get_attribute(&node, CUDA_DEVICE_HOST_NUMA, device->handle) && node >= 0)
        return node;
    if (driver->device_get_attribute(&domain, CUDA_DEVICE_PCI_DOMAIN, device->handle) ||
        driver->device_get_attribute(&bus, CUDA_DEVICE_PCI_BUS, device->handle) ||
        driver->device_get_attribute(&slot, CUDA_DEVICE_PCI_DEVICE, device->handle))
        return -1;
    return os_pci_node((unsigned)domain, (unsigned)bus, (unsigned)slot);
}

uint64_t cuda_context_number(const struct cuda_device *device)
{
    unsigned long long number = 0;
    assert(device->context);
    return device->driver->ctx_get_id && !device->driver->ctx_get_id(device->context, &number) ? number : 0;
}

bool cuda_context_exists(const struct cuda_device *device, uint64_t number)
{
    unsigned long long now = 0;
    if (!number)
        return true;
    int result = device->driver->ctx_get_id(device->context, &now);
    if (!result)
        return now == number;
    return result != CUDA_CONTEXT_IS_DESTROYED && result != CUDA_INVALID_CONTEXT && result != CUDA_DEINITIALIZED;
}

bool cuda_device_reads_host(const struct cuda_device *device)
{
    const int needed[] = {CUDA_DEVICE_PAGEABLE_ACCESS, CUDA_DEVICE_HOST_PAGE_TABLES};
    for (size_t i = 0; i < 2; i++) {
        int value = 0;
        if (device->driver->device_get_attribute(&value, needed[i], device->handle) || !value)
            return false;
    }
    return true;
}

/* The context that cuda_stay() made current on this thread. */
static __thread const struct CUctx_st *stayed;

void cuda_stay(const struct cuda_device *device)
{
    int mode = CUDA_CAPTURE_RELAXED;
    assert(device->context);
    stayed = NULL;
    if (device->driver->ctx_set_current(device->context))
        return;
    if (device->driver->exchange_capture_mode)
        (void)device->driver->exchange_capture_mode(&mode);
    stayed = device->context;
}

int cuda_enter(const struct cuda_device *device, struct cuda_entered *entered)
{
    const struct cuda_driver *driver = device->driver;
    struct CUctx_st *current = NULL;
    int mode = CUDA_CAPTURE_RELAXED;
    assert(device->context);
    entered->pushed = false;
    entered->capture_mode = -1;
    if (stayed == device->context)
        return 0;
    int result = driver->ctx_get_current(&current);
    if (!result && current != device->context)
        result = driver->ctx_push(device->context);
    if (result)
        return result;
    entered->pushed = current != device->context;
    entered->capture_mode = driver->exchange_capture_mode && !driver->exchange_capture_mode(&mode) ? mode : -1;
    return 0;
}

void cuda_leave(const struct cuda_device *device, const struct cuda_entered *entered)
{
    struct CUctx_st *popped;
    int mode = entered->capture_mode;
    if (mode >= 0)
        (void)device->driver->exchange_capture_mode(&mode);
    if (entered->pushed)
        (void)device->driver->ctx_pop(&popped);
}
