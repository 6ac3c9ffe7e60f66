/* entries_modules.c - the functions of the emulated driver for modules and kernels, and the search for functions. See
 * cuda_software.h. */
#include <stdlib.h>
#include <string.h>

#include "entries.h"

/* ---- modules and kernels ---- */

struct CUmod_st {
    const struct kernel *kernel; /* the first kernel of the image */
    bool unloaded;
    struct CUmod_st *next;
};
static CUmodule modules;

struct CUfunc_st {
    const struct kernel *kernel;
    CUmodule module;
    struct CUfunc_st *next;
};
static CUfunction functions;

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned options, int *names, void **values)
{
    ENTER(cuModuleLoadDataEx, CONTEXT);
    const struct kernel *kernel = image ? kernel_of_image(image) : NULL;
    if (!kernel)
        return leave(image ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_VALUE);
    CUmodule made = calloc(1, sizeof *made);
    if (!made)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    *made = (struct CUmod_st){.kernel = kernel, .next = modules};
    *module = modules = made;
    counted.modules++;
    counted.modules_loaded++;
    counted.modules_compiled++;
    return leave(CUDA_SUCCESS);
}

static CUmodule module_of(CUmodule handle, const char *call)
{
    for (CUmodule module = modules; module; module = module->next)
        if (module == handle && !module->unloaded)
            return module;
    violation("%s uses a module that is not loaded", call);
    return NULL;
}

CUresult cuModuleUnload(CUmodule handle)
{
    ENTER(cuModuleUnload, RELEASES);
    CUmodule module = module_of(handle, "cuModuleUnload");
    if (!module)
        return leave_released(CUDA_ERROR_INVALID_HANDLE);
    for (CUstream stream = all_streams; stream; stream = stream->next) {
        const struct operation *at = stream->first;
        while (at && !(at->kind == OPERATION_LAUNCH && at->module == module))
            at = at->next;
        if (at)
            violation("cuModuleUnload of a module whose kernel a stream has not run yet");
    }
    module->unloaded = true;
    counted.modules--;
    return leave_released(CUDA_SUCCESS);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name)
{
    ENTER(cuModuleGetFunction, CONTEXT);
    CUmodule module = module_of(handle, "cuModuleGetFunction");
    const struct kernel *kernel = module ? kernel_named(module->kernel, name) : NULL;
    if (!kernel)
        return leave(module ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE);
    for (CUfunction at = functions; at; at = at->next) {
        if (at->kernel == kernel && at->module == module) {
            *function = at;
            return leave(CUDA_SUCCESS);
        }
    }
    CUfunction made = calloc(1, sizeof *made);
    if (!made)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    *made = (struct CUfunc_st){kernel, module, functions};
    *function = functions = made;
    return leave(CUDA_SUCCESS);
}

static bool launch_touches(struct operation *operation, CUstream stream)
{
    struct range ranges[RANGES_MOST];
    unsigned count = operation->kernel->ranges(operation->arguments, operation->grid, operation->block, ranges);
    struct region *regions[RANGES_MOST];
    for (unsigned i = 0; i < count; i++) {
        regions[i] = ranges[i].bytes ? region_for(ranges[i].address, ranges[i].bytes, operation->kernel->name) : NULL;
        if (ranges[i].bytes && !regions[i])
            return false;
    }
    for (unsigned i = 0; i < count; i++) {
        if (!regions[i])
            continue;
        region_access(regions[i], &ranges[i], stream, operation->kernel->name);
        operation->regions[operation->region_count++] = regions[i];
        if (regions[i]->kind == REGION_DEVICE || ranges[i].write)
            continue;
        operation->checked = region_memory(regions[i], ranges[i].address);
        operation->checked_bytes = ranges[i].bytes;
        operation->checked_sum = range_sum(operation->checked, 0, ranges[i].bytes);
    }
    return true;
}

CUresult cuLaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream_handle,
                        void **parameters, void **extra)
{
    ENTER(cuLaunchKernel, CONTEXT);
    CUfunction function = functions;
    while (function && function != handle)
        function = function->next;
    CUstream stream = stream_of(stream_handle, "cuLaunchKernel");
    if (!function || function->module->unloaded || !stream || stream->context != current_context) {
        if (!function || function->module->unloaded)
            violation("cuLaunchKernel of a function that is not loaded");
        return leave(CUDA_ERROR_INVALID_HANDLE);
    }
    uint64_t threads = (uint64_t)block_x * block_y * block_z;
    if (!grid_x || !grid_y || !grid_z || !threads || threads > 1024 || block_z > 64 || grid_x > INT32_MAX ||
        grid_y > UINT16_MAX || grid_z > UINT16_MAX || shared_bytes > 48 << 10 || !parameters || extra)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (stream->capturing)
        return leave(CUDA_SUCCESS);
    stream_begin(stream);
    struct operation *operation = operation_new(OPERATION_LAUNCH);
    operation->kernel = function->kernel;
    operation->module = function->module;
    memcpy(operation->grid, (unsigned[3]){grid_x, grid_y, grid_z}, sizeof operation->grid);
    memcpy(operation->block, (unsigned[3]){block_x, block_y, block_z}, sizeof operation->block);
    memcpy(operation->arguments, parameters[0], function->kernel->argument_bytes);
    operation->fails = fault_of(ENTRY_cuLaunchKernel, true);
    if (!launch_touches(operation, stream))
        operation->fails = CUDA_ERROR_ILLEGAL_ADDRESS; /* reported only when the kernel runs, as on a real device */
    stream_issue(stream, operation);
    return leave(CUDA_SUCCESS);
}

/* ---- finding functions ---- */

CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags, int *found)
{
    static const struct {
        const char *name;
        void (*symbol)(void);
    } table[] = {
#define CUDA_ENTRY_ADDRESS(base, symbol, arguments) {#base, (void (*)(void))symbol},
        CUDA_ENTRIES(CUDA_ENTRY_ADDRESS){"cuGetProcAddress", (void (*)(void))cuGetProcAddress_v2},
    };
    if (found)
        *found = 1; /* no such symbol */
    if (!name || !entry || flags > 2)
        return CUDA_ERROR_INVALID_VALUE;
    *entry = NULL;
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].name, name) || (i < CUDA_ENTRY_COUNT && configuration.missing[i]))
            continue;
        memcpy(entry, &table[i].symbol, sizeof *entry);
        if (found)
            *found = 0;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *name, void **entry, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(name, entry, version, flags, NULL);
}
