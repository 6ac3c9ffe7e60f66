/* SPDX-License-Identifier: MIT */
/*
 * gpu_kernels.cu - the benchmark's kernels: a stand-in for a training step (gpu_gemm), a delay of chosen length
 * (gpu_spin), and a checksum with which the host compares outputs without copying them back (gpu_checksum).
 *
 * gpu_gemm has the shape of the matrix products that dominate a training step: it keeps the arithmetic units busy and
 * reads and writes memory at the same time. It uses no tensor cores, so it runs on every GPU. Neighboring threads
 * compute neighboring columns, so they read b and write c in adjacent addresses and share the values that they read
 * from a.
 *
 * The file compiles as C as well as CUDA. Compiled as C it runs on the host, one thread after the other, which is what
 * the emulated driver in tests/support launches. `make ptx` turns the file into gpu_kernels.ptx, which the command
 * contains.
 */
#include "gpu_kernels.h"

#ifdef __CUDACC__
#define INLINE static __device__ __forceinline__
#define AT(type, address) ((type *)__cvta_global_to_generic(address))
#define ADD(sum, value) (void)atomicAdd(AT(unsigned long long, sum), (unsigned long long)(value))
#else
#define INLINE static inline
#define AT(type, address) ((type *)(uintptr_t)(address))
#define ADD(sum, value) (void)(*AT(uint64_t, sum) += (value))
#endif

INLINE void gemm_thread(const struct gpu_gemm *work, uint32_t thread)
{
    const uint64_t size = work->size, across = size / GEMM_TILE;
    if (thread >= across * across)
        return;
    const float *a = AT(const float, work->a) + thread / across * GEMM_TILE * size;
    const float *b = AT(const float, work->b) + thread % across;
    float *c = AT(float, work->c) + thread / across * GEMM_TILE * size + thread % across;
    float sums[GEMM_TILE][GEMM_TILE];
    for (int i = 0; i < GEMM_TILE; i++)
        for (int j = 0; j < GEMM_TILE; j++)
            sums[i][j] = c[(uint64_t)i * size + (uint64_t)j * across];
    for (uint64_t k = 0; k < size; k++) {
        float column[GEMM_TILE], row[GEMM_TILE];
        for (int i = 0; i < GEMM_TILE; i++)
            column[i] = a[(uint64_t)i * size + k];
        for (int j = 0; j < GEMM_TILE; j++)
            row[j] = b[k * size + (uint64_t)j * across];
        for (int i = 0; i < GEMM_TILE; i++)
            for (int j = 0; j < GEMM_TILE; j++)
                sums[i][j] += column[i] * row[j];
    }
    for (int i = 0; i < GEMM_TILE; i++)
        for (int j = 0; j < GEMM_TILE; j++)
            c[(uint64_t)i * size + (uint64_t)j * across] = sums[i][j];
}

INLINE void spin_thread(const struct gpu_spin *work, uint32_t thread)
{
    uint64_t x = work->rounds;
    if (thread)
        return;
    for (uint64_t i = 0; i < work->rounds; i++)
        x = x * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;
    *AT(uint64_t, work->out) = x;
}

INLINE void checksum_thread(const struct gpu_checksum *work, uint32_t thread, uint32_t threads)
{
    uint64_t sum = 0;
    if (work->word_bytes == 4)
        for (uint64_t at = thread; at < work->count; at += threads)
            sum += gpu_word_sum(AT(const uint32_t, work->words)[at], at);
    else
        for (uint64_t at = thread; at < work->count; at += threads)
            sum += gpu_word_sum(AT(const uint16_t, work->words)[at], at);
    if (sum)
        ADD(work->sum, sum);
}

#ifdef __CUDACC__
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void __launch_bounds__(GPU_BLOCK) gpu_gemm(struct gpu_gemm work)
{
    gemm_thread(&work, THREAD);
}

extern "C" __global__ void gpu_spin(struct gpu_spin work)
{
    spin_thread(&work, THREAD);
}

extern "C" __global__ void __launch_bounds__(GPU_BLOCK) gpu_checksum(struct gpu_checksum work)
{
    checksum_thread(&work, THREAD, gridDim.x * blockDim.x);
}
#endif
