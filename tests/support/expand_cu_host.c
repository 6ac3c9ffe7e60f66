/* SPDX-License-Identifier: MIT */
/* expand_cu_host.c - see expand_cu_host.h. */
#include "expand_cu_host.h"

#include <stddef.h>

#include "cuda/expand.cu"

/* A GPU refuses an access at an address that is not a multiple of its size; the host does not. The compiler, given
 * -fsanitize=alignment by the Makefile, calls this function before such an access. */
static __thread bool misaligned;
void __ubsan_handle_type_mismatch_v1(void *place, void *address);
#if !defined(EXPAND_SANITIZED)
void __ubsan_handle_type_mismatch_v1(void *place, void *address)
{
    (void)place;
    misaligned |= address != NULL;
}
#endif

bool expand_cu_host_misaligned(void)
{
    bool was = misaligned;
    misaligned = false;
    return was;
}

void expand_cu_host(const struct expand_arguments *work, uint32_t blocks, uint32_t threads)
{
    for (uint32_t thread = 0; thread < blocks * threads; thread++)
        expand_thread(work, thread, blocks * threads);
}
