/* SPDX-License-Identifier: MIT */
/*
 * cuda_kernel.c - see cuda_kernel.h.
 *
 * The library contains the kernel twice: as machine code for some GPUs (expand.fatbin), which a driver loads as it is,
 * and as PTX (expand.ptx), which every driver compiles for its GPU. The machine code is tried first. A driver refuses
 * it if its GPU is another one, or if it is older than the compiler; the PTX is for both cases.
 *
 * Shared modules form a list. A context is identified by its number, because a context that a reset has destroyed and
 * the next one can have the same handle. Drivers before CUDA 12.0 have no such numbers; with them each user loads a
 * module of its own. A module is loaded and unloaded outside the lock, so two loaders that are opened at the same
 * moment can load it twice; the second one is unloaded at once.
 *
 * A child that was forked ignores the entries of its parent, because it has none of its contexts.
 */
#include "cuda_kernel.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expand_ptx.h"
#include "platform/os.h"
#include "staging/expand_arguments.h"

struct shared {
    struct cuda_kernel kernel; /* first: a user has its address */
    const struct cuda_driver *driver;
    struct CUmod_st *module;
    uint64_t context; /* its number; 0: unknown, so the entry is not shared */
    uint32_t process;
    uint32_t uses;
    struct shared *next;
};

static struct shared *all; /* with os_process_lock() */

/* Finds the module of a context, and counts a use. With `fresh`, which is loaded, adds that if there is none. */
static struct shared *find(const struct cuda_driver *driver, uint64_t context, struct shared *fresh)
{
    const uint32_t own = os_process_id();
    os_process_lock();
    struct shared *found = all;
    while (found && !(found->driver == driver && found->context == context && found->process == own))
        found = found->next;
    if (found) {
        found->uses++;
    } else if (fresh) {
        fresh->process = own;
        fresh->next = all;
        found = all = fresh;
    }
    os_process_unlock();
    return found;
}

/* Launches an empty batch on a stream of its own. A driver without cuFuncLoad loads a function at its first launch. */
static int launch_once(const struct cuda_driver *driver, struct CUfunc_st *function)
{
    struct expand_arguments nothing;
    void *parameters[] = {&nothing};
    struct CUstream_st *stream = NULL;
    memset(&nothing, 0, sizeof nothing);
    int result = driver->stream_create(&stream, CUDA_STREAM_NON_BLOCKING);
    if (result)
        return result;
    result = driver->launch_kernel(function, 1, 1, 1, EXPAND_BLOCK, 1, 1, 0, stream, parameters, NULL);
    if (!result)
        result = driver->stream_synchronize(stream);
    (void)driver->stream_destroy(stream);
    return result;
}

/* Asks how many blocks fit on the device. Without an answer, there is a number that fits every GPU. */
static int count_blocks(const struct cuda_device *device, struct cuda_kernel *kernel)
{
    int processors = 0, blocks = 0;
    int result = device->driver->device_get_attribute(&processors, CUDA_DEVICE_MULTIPROCESSORS, device->handle);
    if (!device->driver->max_active_blocks ||
        device->driver->max_active_blocks(&blocks, kernel->function, EXPAND_BLOCK, 0) || blocks < 1)
        blocks = EXPAND_BLOCKS_HELD;
    kernel->held = (uint32_t)(processors > 0 ? processors : 1) * (uint32_t)blocks;
    return result;
}

/* Loads the module from one of its two forms, with its function ready to be launched. Returns the driver's result, and
 * in *doing what failed. */
static int load(const struct cuda_device *device, const void *image, struct shared *fresh, char *log, size_t capacity,
                const char **doing)
{
    const struct cuda_driver *driver = device->driver;
    int names[] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(capacity - 1)};
    *doing = "load";
    memset(log, 0, capacity);
    int result = driver->module_load(&fresh->module, image, 2, names, values);
    if (result)
        return result;
    *doing = "find";
    result = driver->module_get_function(&fresh->kernel.function, fresh->module, "tokmap_expand");
    /* Some drivers load a function only at its first launch, which would delay the first next(). */
    if (!result) {
        *doing = "prepare";
        result =
            driver->func_load ? driver->func_load(fresh->kernel.function) : launch_once(driver, fresh->kernel.function);
    }
    if (!result)
        result = count_blocks(device, &fresh->kernel);
    if (result)
        (void)driver->module_unload(fresh->module);
    return result;
}

/* Makes an entry that is not in the list. Returns NULL, with the reason, if neither form can be loaded. */
static struct shared *load_any(const struct cuda_device *device, char reason[CUDA_KERNEL_REASON])
{
    const void *const images[] = {expand_fatbin, expand_ptx};
    struct shared *fresh = calloc(1, sizeof *fresh);
    const char *name = NULL, *doing = "load";
    char log[512] = "";
    int result = CUDA_OUT_OF_MEMORY;
    for (size_t i = 0; i < 2 && fresh && result; i++)
        result = load(device, images[i], fresh, log, sizeof log, &doing);
    if (!result) {
        fresh->driver = device->driver;
        fresh->uses = 1;
        return fresh;
    }
    free(fresh);
    if (device->driver->get_error_name(result, &name) || !name)
        name = "an error without a name";
    log[strcspn(log, "\n")] = '\0';
    (void)snprintf(reason, CUDA_KERNEL_REASON, "the driver cannot %s the kernel: %.60s (%d)%s%.140s", doing, name,
                   result, log[0] ? ": " : "", log);
    return NULL;
}

const struct cuda_kernel *cuda_kernel_take(const struct cuda_device *device, char reason[CUDA_KERNEL_REASON])
{
    uint64_t context = cuda_context_number(device);
    struct shared *found = context ? find(device->driver, context, NULL) : NULL;
    assert(device->context);
    reason[0] = '\0';
    if (found)
        return &found->kernel;
    struct shared *fresh = load_any(device, reason);
    if (!fresh || !context)
        return fresh ? &fresh->kernel : NULL;
    fresh->context = context;
    found = find(device->driver, context, fresh);
    if (found != fresh) {
        (void)device->driver->module_unload(fresh->module);
        free(fresh);
    }
    return &found->kernel;
}

void cuda_kernel_release(const struct cuda_kernel *kernel, bool lost)
{
    struct shared *entry = (struct shared *)(uintptr_t)kernel;
    if (!entry)
        return;
    os_process_lock();
    const bool last = !--entry->uses;
    struct shared **at = &all;
    while (last && *at && *at != entry)
        at = &(*at)->next;
    if (last && *at)
        *at = entry->next;
    os_process_unlock();
    if (!last)
        return;
    if (!lost)
        (void)entry->driver->module_unload(entry->module);
    free(entry);
}
