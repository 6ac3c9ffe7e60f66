/* cuda_device.c - see cuda_device.h. */
#include "cuda_device.h"

#include <string.h>

#include "common/error.h"
#include "platform/os.h"
#include "text/decimal.h"

bool cuda_device_is_host(const char *device)
{
    return !device || !strcmp(device, "cpu");
}

/* The number of "cuda:N", at most 999999; -1 for "cuda"; -2 for anything else. */
static int number_of(const char *device)
{
    uint64_t number;
    if (!device || strncmp(device, "cuda", 4))
        return -2;
    if (!device[4])
        return -1;
    if (device[4] != ':' || !decimal_parse(device + 5, strlen(device + 5), &number) || number > 999999)
        return -2;
    return (int)number;
}

/* The device of the calling thread's context, else 0. */
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

/* The driver is known. */
static enum tokmap_status choose(struct cuda_device *device, int ordinal, struct tokmap_error *error)
{
    const struct cuda_driver *driver = device->driver;
    int devices;
    enum tokmap_status status = cuda_driver_devices(driver, &devices, error);
    if (status)
        return status;
    device->ordinal = ordinal;
    if (ordinal < 0 || ordinal >= devices)
        return error_set(error, TOKMAP_ERROR_NO_DEVICE, NULL, TOKMAP_NO_OFFSET,
                         "there is no device cuda:%d: the driver shows %d to this process, from cuda:0 on", ordinal,
                         devices);
    int result = driver->device_get(&device->handle, ordinal);
    return result ? cuda_driver_error(driver, TOKMAP_ERROR_NO_DEVICE, result, error, "finding the GPU") : TOKMAP_OK;
}

enum tokmap_status cuda_device_find_number(struct cuda_device *device, int ordinal, struct tokmap_error *error)
{
    memset(device, 0, sizeof *device);
    enum tokmap_status status = cuda_driver_open(&device->driver, error);
    return status ? status : choose(device, ordinal, error);
}

enum tokmap_status cuda_device_find(struct cuda_device *device, const char *name, struct tokmap_error *error)
{
    int number = number_of(name);
    memset(device, 0, sizeof *device);
    if (number == -2)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "device is \"%.40s\": \"cuda:0\", \"cuda:1\" .. or \"cuda\" for a GPU, \"cpu\" for none",
                         name ? name : "");
    enum tokmap_status status = cuda_driver_open(&device->driver, error);
    if (status)
        return status;
    return choose(device, number < 0 ? current_device(device->driver) : number, error);
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
    return cuda_driver_error(device->driver,
                             result == CUDA_OUT_OF_MEMORY ? TOKMAP_ERROR_MEMORY : TOKMAP_ERROR_DEVICE, result, error,
                             "opening the GPU's context");
}

void cuda_device_close(const struct cuda_device *device)
{
    if (device->context)
        (void)device->driver->primary_release(device->handle);
}

int cuda_device_node(const struct cuda_device *device)
{
    const struct cuda_driver *driver = device->driver;
    int node, domain, bus, at;
    if (!driver->device_get_attribute(&node, CUDA_DEVICE_HOST_NUMA, device->handle))
        return node;
    if (driver->device_get_attribute(&domain, CUDA_DEVICE_PCI_DOMAIN, device->handle) ||
        driver->device_get_attribute(&bus, CUDA_DEVICE_PCI_BUS, device->handle) ||
        driver->device_get_attribute(&at, CUDA_DEVICE_PCI_DEVICE, device->handle))
        return -1;
    return os_pci_node((unsigned)domain, (unsigned)bus, (unsigned)at);
}

int cuda_enter(const struct cuda_device *device, struct cuda_entered *entered)
{
    const struct cuda_driver *driver = device->driver;
    struct CUctx_st *current = NULL;
    int mode = CUDA_CAPTURE_RELAXED;
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
