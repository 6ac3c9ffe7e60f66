/* SPDX-License-Identifier: MIT */
/* gpu_kernels_host.h - the kernels of bench/harness/gpu_kernels.cu, compiled as C: every thread of a launch, one
 * after another. */
#ifndef TOKMAP_SUPPORT_GPU_KERNELS_HOST_H
#define TOKMAP_SUPPORT_GPU_KERNELS_HOST_H

#include "harness/gpu_kernels.h"

void gpu_gemm_host(const struct gpu_gemm *work, uint32_t threads);
void gpu_spin_host(const struct gpu_spin *work, uint32_t threads);
void gpu_checksum_host(const struct gpu_checksum *work, uint32_t threads);

#endif
