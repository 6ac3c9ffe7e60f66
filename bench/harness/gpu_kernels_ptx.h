/* SPDX-License-Identifier: MIT */
/*
 * gpu_kernels_ptx.h - the benchmark's kernels in two forms: as machine code for the GPUs of data centers, and as PTX,
 * which a CUDA driver compiles when it is loaded.
 */
#ifndef TOKMAP_BENCH_HARNESS_GPU_KERNELS_PTX_H
#define TOKMAP_BENCH_HARNESS_GPU_KERNELS_PTX_H

/* The bytes of gpu_kernels.ptx, followed by a zero. Never changes; any thread may read it. */
extern const char gpu_kernels_ptx[];

/* The bytes of gpu_kernels.fatbin, which states its own size. A driver for CUDA 13 or later loads it if it contains
 * code for the GPU, and otherwise refuses it. Never changes; any thread may read it. */
extern const unsigned char gpu_kernels_fatbin[];

#endif
