/* expand_cu_host.h - the kernel of src/cuda/expand.cu, compiled as C. */
#ifndef TOKMAP_SUPPORT_EXPAND_CU_HOST_H
#define TOKMAP_SUPPORT_EXPAND_CU_HOST_H

#include "staging/expand_arguments.h"

/* Runs every thread of a launch of blocks * threads of them, one after another. All addresses are this process's; outputs
 * at multiples of their elements' sizes. */
void expand_cu_host(const struct expand_arguments *work, uint32_t blocks, uint32_t threads);

#endif
