/* SPDX-License-Identifier: MIT */
/* entries_modules.c - the functions of the emulated driver for modules and kernels, and the search for functions. See
 * cuda_software.h. */
#include <stdlib.h>
#include <string.h>

#include "entries.h"

/* ---- modules and kernels ---- */

struct CUmod_st {
    const struct kernel *kernel; /* the first kernel of the image */
    CUcontext context;
    bool unloaded;
    struct CUmod_st *next;
};
static CUmodule modules;

struct CUfunc_st {
    const struct kernel *kernel;
    CUmodule module;
    bool loaded; /* it is on the device */
    struct CUfunc_st *next;
};
static CUfunction functions;

static CUresult module_load(CUmodule *module, const void *image)
{
    const struct kernel *kernel = NULL;
    bool compiled = false;
    CUresult result = image ? image_open(image, &kernel, &compiled) : CUDA_ERROR_INVALID_VALUE;
    if (result)
        return result;
    CUmodule made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (struct CUmod_st){.kernel = kernel, .context = current_context, .next = modules};
    *module = modules = made;
    counted.modules++;
    counted.modules_loaded++;
    counted.modules_compiled += compiled;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned options, int *names, void **values)
{
    ENTER(cuModuleLoadDataEx, CONTEXT);
    return leave(module_load(module, image));
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    ENTER(cuModuleLoadData, CONTEXT);
    return leave(module_load(module, image));
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    ENTER(cuModuleLoadFatBinary, CONTEXT);
    return leave(module_load(module, image));
}

void modules_lost(CUcontext context)
{
    for (CUmodule module = modules; module; module = module->next) {
        if (module->context == context && !module->unloaded) {
            module->unloaded = true;
            counted.modules--;
        }
    }
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

/* Returns whether modules bring their kernels onto the device when they are loaded. */
static bool loads_at_once(void)
{
    const char *given = getenv("CUDA_MODULE_LOADING");
    bool lazy = configuration.version >= 12020;
    if (given && configuration.version >= 11070)
        lazy = !strcmp(given, "LAZY") || (lazy && strcmp(given, "EAGER"));
    return !lazy;
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
    *made = (struct CUfunc_st){kernel, module, loads_at_once(), functions};
    counted.functions_loaded += made->loaded;
    *function = functions = made;
    return leave(CUDA_SUCCESS);
}

/* Returns the function if it is one and its module is loaded, or NULL. */
static CUfunction function_of(CUfunction handle, const char *call)
{
    CUfunction function = functions;
    while (function && function != handle)
        function = function->next;
    if (function && !function->module->unloaded)
        return function;
    violation("%s of a function that is not loaded", call);
    return NULL;
}

CUresult cuFuncLoad(CUfunction handle)
{
    ENTER(cuFuncLoad, CONTEXT);
    CUfunction function = function_of(handle, "cuFuncLoad");
    if (!function)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    counted.functions_loaded += !function->loaded;
    function->loaded = true;
    return leave(CUDA_SUCCESS);
}

/* A multiprocessor has 64 Ki registers, of which a warp takes a multiple of 256. */
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int block_size,
                                                     size_t shared_bytes)
{
    ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor, CONTEXT);
    if (!function_of(handle, "cuOccupancyMaxActiveBlocksPerMultiprocessor"))
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if (!blocks || block_size < 1 || block_size > 1024 || shared_bytes > 48 << 10)
        return leave(CUDA_ERROR_INVALID_VALUE);
    const unsigned warps = ((unsigned)block_size + 31) / 32, taken = (configuration.registers * 32 + 255) / 256 * 256;
    const unsigned held = (64u << 10) / taken / warps, most = 64 / warps;
    *blocks = (int)(held < most ? held : most < 32 ? most : 32);
    return leave(CUDA_SUCCESS);
}

/* Loads a function at its first launch. Then the device must be idle, so the host waits for all streams. */
static void load_late(CUfunction function)
{
    counted.late_loads++;
    counted.functions_loaded++;
    counted.synchronizations++;
    function->loaded = true;
    if (!is_stuck(current_context))
        await_all(current_context);
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
    ENTER_WITH(cuLaunchKernel, CONTEXT, stream_handle, NULL);
    CUfunction function = function_of(handle, "cuLaunchKernel");
    CUstream stream = stream_of(stream_handle, "cuLaunchKernel");
    if (!function || !stream || stream->context != current_context)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    uint64_t threads = (uint64_t)block_x * block_y * block_z;
    if (!grid_x || !grid_y || !grid_z || !threads || threads > 1024 || block_z > 64 || grid_x > INT32_MAX ||
        grid_y > UINT16_MAX || grid_z > UINT16_MAX || shared_bytes > 48 << 10 || !parameters || extra)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (capture_implied(stream))
        return leave(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (!function->loaded)
        load_late(function);
    if (stream->capture)
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

/* The functions that are newer than CUDA 11.3, and those whose signature has changed since: cuGetProcAddress returns
 * the newest that is not newer than the version that is asked for. */
static CUresult another_signature(void)
{
    pthread_mutex_lock(&big);
    violation("a function was called that cuGetProcAddress returned for a newer version than the caller was made for, "
              "with other arguments");
    pthread_mutex_unlock(&big);
    return CUDA_ERROR_INVALID_VALUE;
}

struct found {
    const char *name;
    int version; /* in which it appeared; 0: 11.3 or before */
    void (*symbol)(void);
};

static const struct found newer[] = {
    {"cuGetProcAddress", 12000, (void (*)(void))cuGetProcAddress_v2},
    {"cuCtxGetId", 12000, (void (*)(void))cuCtxGetId},
    {"cuFuncLoad", 12040, (void (*)(void))cuFuncLoad},
    {"cuDeviceGetDevResource", 12040, (void (*)(void))cuDeviceGetDevResource},
    {"cuDevResourceGenerateDesc", 12040, (void (*)(void))cuDevResourceGenerateDesc},
    {"cuGreenCtxCreate", 12040, (void (*)(void))cuGreenCtxCreate},
    {"cuGreenCtxDestroy", 12040, (void (*)(void))cuGreenCtxDestroy},
    {"cuCtxFromGreenCtx", 12040, (void (*)(void))cuCtxFromGreenCtx},
    {"cuStreamGetGreenCtx", 12040, (void (*)(void))cuStreamGetGreenCtx},
    {"cuGreenCtxStreamCreate", 12050, (void (*)(void))cuGreenCtxStreamCreate},
    {"cuStreamGetCtx", 12050, (void (*)(void))cuStreamGetCtx_v2},
    {"cuStreamGetCtx_v2", INT32_MAX, NULL}, /* no name that can be asked for */
    {"cuCtxGetDevice", 13000, (void (*)(void))another_signature},
    {"cuCtxSynchronize", 13000, (void (*)(void))another_signature},
};
static const struct found known[] = {
#define CUDA_ENTRY_ADDRESS(base, symbol, arguments) {#base, 0, (void (*)(void))symbol},
    CUDA_ENTRIES(CUDA_ENTRY_ADDRESS){"cuGetProcAddress", 0, (void (*)(void))cuGetProcAddress},
#undef CUDA_ENTRY_ADDRESS
};

static bool is_missing(const char *name)
{
    for (unsigned i = 0; i < CUDA_ENTRY_COUNT; i++)
        if (configuration.missing[i] && !strcmp(name, entry_names[i]))
            return true;
    return false;
}

/* Returns the function of that name for a version, or NULL. *exists: there is one for some version. */
static const struct found *find_function(const char *name, int version, bool *exists)
{
    const struct found *best = NULL;
    bool only_newer = false;
    for (unsigned i = 0; i < sizeof newer / sizeof *newer; i++) {
        if (strcmp(newer[i].name, name))
            continue;
        *exists = newer[i].symbol != NULL;
        only_newer |= strcmp(name, "cuGetProcAddress") && strcmp(name, "cuStreamGetCtx") &&
                      strcmp(name, "cuCtxGetDevice") && strcmp(name, "cuCtxSynchronize");
        if (newer[i].version <= version)
            best = &newer[i];
    }
    for (unsigned i = 0; i < sizeof known / sizeof *known && !best && !only_newer; i++)
        if (!strcmp(known[i].name, name))
            best = &known[i];
    *exists |= best != NULL;
    return best;
}

enum { SYMBOL_FOUND = 0, SYMBOL_NOT_FOUND = 1, SYMBOL_VERSION_NOT_SUFFICIENT = 2 };
enum { PER_THREAD_DEFAULT_STREAM = 2 };

CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags, int *found)
{
    bool exists = false;
    if (!name || !entry || flags > PER_THREAD_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    *entry = NULL;
    pthread_mutex_lock(&big);
    if (flags == PER_THREAD_DEFAULT_STREAM)
        violation("cuGetProcAddress is asked for functions whose stream NULL is the thread's own");
    const struct found *function = is_missing(name) ? NULL : find_function(name, version, &exists);
    CUresult result = version > configuration.version ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (function && !result)
        memcpy(entry, &function->symbol, sizeof *entry);
    if (found)
        *found = *entry ? SYMBOL_FOUND : exists ? SYMBOL_VERSION_NOT_SUFFICIENT : SYMBOL_NOT_FOUND;
    pthread_mutex_unlock(&big);
    return result;
}

/* Before CUDA 12, a function that is not found is an error. */
CUresult cuGetProcAddress(const char *name, void **entry, int version, uint64_t flags)
{
    CUresult result = cuGetProcAddress_v2(name, entry, version, flags, NULL);
    return result || *entry ? result : CUDA_ERROR_NOT_FOUND;
}
