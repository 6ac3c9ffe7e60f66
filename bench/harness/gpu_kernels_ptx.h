/* gpu_kernels_ptx.h - the text of the benchmark's kernels, which a CUDA driver compiles when it is loaded. */
#ifndef TOKMAP_BENCH_HARNESS_GPU_KERNELS_PTX_H
#define TOKMAP_BENCH_HARNESS_GPU_KERNELS_PTX_H

/* The bytes of gpu_kernels.ptx, followed by a zero. Never changes; any thread may read it. */
extern const char gpu_kernels_ptx[];

#endif
