/* SPDX-License-Identifier: MIT */
/* gpu_kernels_host.c - see gpu_kernels_host.h. */
#include "gpu_kernels_host.h"

#include "harness/gpu_kernels.cu"

void gpu_gemm_host(const struct gpu_gemm *work, uint32_t threads)
{
    for (uint32_t thread = 0; thread < threads; thread++)
        gemm_thread(work, thread);
}

void gpu_spin_host(const struct gpu_spin *work, uint32_t threads)
{
    for (uint32_t thread = 0; thread < threads; thread++)
        spin_thread(work, thread);
}

void gpu_checksum_host(const struct gpu_checksum *work, uint32_t threads)
{
    for (uint32_t thread = 0; thread < threads; thread++)
        checksum_thread(work, thread, threads);
}
