/* expand_cu_host.c - see expand_cu_host.h. */
#include "expand_cu_host.h"

#include "cuda/expand.cu"

void expand_cu_host(const struct expand_arguments *work, uint32_t blocks, uint32_t threads)
{
    for (uint32_t thread = 0; thread < blocks * threads; thread++)
        expand_thread(work, thread, blocks * threads);
}
