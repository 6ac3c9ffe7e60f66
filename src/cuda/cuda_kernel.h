/* SPDX-License-Identifier: MIT */
/*
 * cuda_kernel.h - the library's kernel, tokmap_expand, on a device: loaded once for all loaders of a context.
 *
 * To load a kernel takes a driver 1 ms, and 0.1 to 0.3 s where it has to compile the PTX first. So the module is shared
 * by everything in the process that uses the same context, with a count, and is unloaded with the last use.
 */
#ifndef TOKMAP_CUDA_CUDA_KERNEL_H
#define TOKMAP_CUDA_CUDA_KERNEL_H

#include "cuda_device.h"

struct cuda_kernel {
    struct CUfunc_st *function; /* takes a struct expand_arguments; blocks of EXPAND_BLOCK threads */
    uint32_t held;              /* blocks that the device holds at once, for expand_blocks() */
};

#define CUDA_KERNEL_REASON 256 /* room for why there is no kernel */

/* Returns the kernel for the context of an open device, which is current, and loads it if nothing in this process has.
 *   reason   receives "", or why the result is NULL: the driver accepts neither the machine code nor the PTX
 * Give it back with cuda_kernel_release(). Any thread. */
const struct cuda_kernel *cuda_kernel_take(const struct cuda_device *device, char reason[CUDA_KERNEL_REASON]);

/* Ends a use, and unloads the module with the last one. The context is current, and nothing that uses the kernel is
 * enqueued any more.
 *   lost   true: the context does not exist any more, and the module was lost with it; no call of the driver is made
 * Any thread, but not in a forked child. Accepts NULL. */
void cuda_kernel_release(const struct cuda_kernel *kernel, bool lost);

#endif
