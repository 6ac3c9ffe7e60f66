/* SPDX-License-Identifier: MIT */
/* expand_cu_host.h - the kernel of src/cuda/expand.cu, compiled as C. */
#ifndef TOKMAP_SUPPORT_EXPAND_CU_HOST_H
#define TOKMAP_SUPPORT_EXPAND_CU_HOST_H

#include <stdbool.h>

#include "staging/expand_arguments.h"

/* Runs a launch of `blocks` blocks of `threads` threads, one thread after another. All addresses are of this process;
 * outputs must be aligned to their elements. */
void expand_cu_host(const struct expand_arguments *work, uint32_t blocks, uint32_t threads);
/* Returns whether this thread has accessed memory at an address that is not a multiple of the access, on which a GPU
 * faults, since the last call. (Never in a build with sanitizers, which find that themselves.) */
bool expand_cu_host_misaligned(void);

#endif
