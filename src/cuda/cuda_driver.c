/* SPDX-License-Identifier: MIT */
/*
 * cuda_driver.c - see cuda_driver.h.
 *
 * The tables of all drivers that were opened form a list that only grows. An entry is complete before one atomic
 * exchange makes it visible. So opening needs no lock; a lock could be held by another thread at the moment of a fork
 * and would then stay locked in the child. Outside of tests the list has one entry.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cuda_driver.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"

#define LIBRARY "libcuda.so.1"
#define LEGACY_STREAM 1u /* flag of cuGetProcAddress: stream NULL is the legacy default stream, not one per thread */

static const struct {
    const char *name, *decorated;
    size_t at; /* offset of the function pointer in struct cuda_driver */
    int version;
    int need;
} entries[] = {
#define ENTRY(need, field, name, decorated, version, arguments)                                                        \
    {name, decorated, offsetof(struct cuda_driver, field), version, need},
    CUDA_DRIVER_MAP(ENTRY)
#undef ENTRY
};

struct loaded {
    struct cuda_driver driver;
    void *handle;
    struct loaded *next;
};

static struct loaded *all_loaded;

typedef int get_entry(const char *name, void **found, int version, uint64_t flags, int *status);
typedef int get_entry_before_12(const char *name, void **found, int version, uint64_t flags);

static enum tokmap_status no_driver(struct tokmap_error *error, const char *reason, const char *detail)
{
    return error_set(error, TOKMAP_ERROR_NO_DEVICE, NULL, TOKMAP_NO_OFFSET, "no usable GPU: %s%s", reason, detail);
}

/* Reports why the driver cannot be used. get_name may be NULL. */
static enum tokmap_status no_device(int (*get_name)(int, const char **), int result, struct tokmap_error *error)
{
    char reason[400];
    const char *visible = secure_getenv("CUDA_VISIBLE_DEVICES"), *name = NULL;
    if (result != CUDA_STUB_LIBRARY && get_name)
        (void)get_name(result, &name);
    if (result == CUDA_STUB_LIBRARY)
        (void)snprintf(reason, sizeof reason,
                       "the library that was found is the stub of the CUDA toolkit, which is for linking only; remove "
                       "the folder `stubs` from the library path and install NVIDIA's driver");
    else if (result == CUDA_NO_DEVICE && visible)
        (void)snprintf(reason, sizeof reason,
                       "the driver shows no device to this process; CUDA_VISIBLE_DEVICES is \"%.80s\", so change it or "
                       "remove it from the environment",
                       visible);
    else if (result == CUDA_NO_DEVICE)
        (void)snprintf(
            reason, sizeof reason,
            "the driver finds no device; if the machine has one, check it with nvidia-smi, and if the program "
            "runs in a container, start that with access to the GPU");
    else if (result == CUDA_SYSTEM_NOT_READY)
        (void)snprintf(reason, sizeof reason,
                       "the GPUs of this machine are not ready (%d); where NVSwitch connects them, NVIDIA's fabric "
                       "manager has to run, in the version of the driver: systemctl status nvidia-fabricmanager says "
                       "why it does not",
                       result);
    else if (result == CUDA_SYSTEM_DRIVER_MISMATCH)
        (void)snprintf(reason, sizeof reason,
                       "the driver's library and its kernel module have different versions (%d), as after an update; "
                       "restart the machine, and if the program runs in a container, start that again",
                       result);
    else if (result == CUDA_COMPAT_NOT_SUPPORTED)
        (void)snprintf(reason, sizeof reason,
                       "the library that was found is of the forward compatibility package (cuda-compat), which this "
                       "GPU does not support (%d); remove its folder from LD_LIBRARY_PATH, or uninstall the package",
                       result);
    else if (result == CUDA_NOT_INITIALIZED)
        (void)snprintf(reason, sizeof reason,
                       "the driver cannot be used in a process that was forked after CUDA was first used; start worker "
                       "processes by spawn, or use CUDA only in the child");
    else
        (void)snprintf(reason, sizeof reason, "the driver does not start: %.80s (%d); check it with nvidia-smi",
                       name ? name : "an error without a name", result);
    enum tokmap_status status = no_driver(error, reason, "");
    if (error)
        error->device = result;
    return status;
}

/* Finds the functions of the driver. Returns NULL, or the name of a required function that the driver does not have. */
static const char *fill_table(struct cuda_driver *driver, void *handle)
{
    void *new_way = os_library_symbol(handle, "cuGetProcAddress_v2");
    void *old_way = os_library_symbol(handle, "cuGetProcAddress");
    get_entry *get = NULL;
    get_entry_before_12 *get_before = NULL;
    memcpy(&get, &new_way, sizeof get);
    memcpy(&get_before, &old_way, sizeof get_before);
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *found = NULL;
        int result = 1, status = 0;
        /* 11030 stands for all versions up to that one. */
        if (!entries[i].need && entries[i].version > 11030 && entries[i].version > driver->version)
            continue;
        if (get)
            result = get(entries[i].name, &found, entries[i].version, LEGACY_STREAM, &status);
        else if (get_before)
            result = get_before(entries[i].name, &found, entries[i].version, LEGACY_STREAM);
        if (result)
            found = NULL;
        if (!found && (entries[i].need || !get))
            found = os_library_symbol(handle, entries[i].decorated);
        if (!found && entries[i].need)
            return entries[i].decorated;
        memcpy((char *)driver + entries[i].at, &found, sizeof found);
    }
    return NULL;
}

static enum tokmap_status load(struct loaded *loaded, struct tokmap_error *error)
{
    struct cuda_driver *driver = &loaded->driver;
    void *symbol = os_library_symbol(loaded->handle, "cuDriverGetVersion");
    int (*get_version)(int *version) = NULL;
    memcpy(&get_version, &symbol, sizeof get_version);
    os_library_path(loaded->handle, driver->path, sizeof driver->path);
    int result = get_version ? get_version(&driver->version) : 0;
    const char *missing = result ? NULL : fill_table(driver, loaded->handle);
    if (missing)
        return no_driver(error, "the driver is too old and must be updated; it does not have the function ", missing);
    return result ? no_device(driver->get_error_name, result, error) : TOKMAP_OK;
}

/* Initializes the driver and finds its table in the list, or adds it. */
static enum tokmap_status find(void *handle, const struct cuda_driver **driver, struct tokmap_error *error)
{
    void *symbols[] = {os_library_symbol(handle, "cuInit"), os_library_symbol(handle, "cuGetErrorName")};
    int (*init)(unsigned) = NULL, (*get_name)(int, const char **) = NULL;
    memcpy(&init, &symbols[0], sizeof init);
    memcpy(&get_name, &symbols[1], sizeof get_name);
    if (!init)
        return no_driver(error, "the library that was found is not a CUDA driver; it does not have the function ",
                         "cuInit");
    int result = init(0);
    if (result)
        return no_device(get_name, result, error);
    for (struct loaded *known = __atomic_load_n(&all_loaded, __ATOMIC_ACQUIRE); known; known = known->next) {
        if (known->handle == handle) {
            *driver = &known->driver;
            return TOKMAP_OK;
        }
    }
    struct loaded *loaded = calloc(1, sizeof *loaded);
    if (!loaded)
        return error_set_memory(error, "the table of the driver's functions", sizeof *loaded);
    loaded->handle = handle;
    enum tokmap_status status = load(loaded, error);
    if (status) {
        free(loaded);
        return status;
    }
    loaded->next = __atomic_load_n(&all_loaded, __ATOMIC_ACQUIRE);
    while (!__atomic_compare_exchange_n(&all_loaded, &loaded->next, loaded, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
    *driver = &loaded->driver;
    return TOKMAP_OK;
}

enum tokmap_status cuda_driver_open(const struct cuda_driver **driver, struct tokmap_error *error)
{
    const char *given = secure_getenv("TOKMAP_CUDA_DRIVER");
    *driver = NULL;
    char reason[400];
    void *handle;
    if (!os_library_open(given && *given ? given : LIBRARY, &handle, reason, sizeof reason))
        return no_driver(error, "install NVIDIA's driver, or name no device: ", reason);
    enum tokmap_status status = find(handle, driver, error);
    os_library_close(handle);
    return status;
}

enum tokmap_status cuda_driver_devices(const struct cuda_driver *driver, int *devices, struct tokmap_error *error)
{
    *devices = 0;
    int result = driver->device_get_count(devices);
    if (!result && *devices < 1)
        result = CUDA_NO_DEVICE;
    return result ? no_device(driver->get_error_name, result, error) : TOKMAP_OK;
}

/* Returns what the user can do about a result, or "". */
static const char *advice_on(int result)
{
    if (result >= CUDA_STREAM_CAPTURE_FIRST && result <= CUDA_STREAM_CAPTURE_LAST)
        return "; a graph is being captured, so make this call before the capture or between launches of the graph";
    switch (result) {
    case CUDA_CONTEXT_IS_DESTROYED:
        return "; the program has reset the device; before a reset, close everything that is open on the device";
    case 700: /* this and the following results are faults of a kernel, after which every call fails */
    case 702:
    case 710:
    case 714:
    case 715:
    case 716:
    case 717:
    case 718:
    case 719:
        return "; an earlier kernel of this program may be at fault; restart the program, because the GPU refuses all "
               "further calls of this process";
    default:
        return "";
    }
}

enum tokmap_status cuda_driver_error(const struct cuda_driver *driver, enum tokmap_status status, int result,
                                     struct tokmap_error *error, const char *doing)
{
    const char *name = NULL, *text = NULL;
    assert(status);
    if (driver->get_error_name(result, &name) || !name)
        name = "an error without a name";
    if (driver->get_error_string(result, &text) || !text)
        text = "no text";
    (void)error_set(error, status, NULL, TOKMAP_NO_OFFSET, "%s failed: %s (%d), %s%s", doing, name, result, text,
                    advice_on(result));
    if (error)
        error->device = result;
    return status;
}
