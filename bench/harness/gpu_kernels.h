/* SPDX-License-Identifier: MIT */
/*
 * gpu_kernels.h - the benchmark's own GPU kernels (gpu_kernels.cu) and their arguments.
 *
 * A launch passes one of these structs by value. The structs consist of 64-bit words and have no padding, so host and
 * device agree on their layout. The header is plain C that a CUDA compiler accepts, too.
 */
#ifndef TOKMAP_BENCH_HARNESS_GPU_KERNELS_H
#define TOKMAP_BENCH_HARNESS_GPU_KERNELS_H

#include <stdint.h>

#define GPU_BLOCK 256 /* threads in a block */
#define GEMM_TILE 8   /* each thread of gpu_gemm computes GEMM_TILE rows of GEMM_TILE columns */

/* Kernel gpu_gemm computes c = a * b + c for square matrices of floats with `size` rows. size is a multiple of
 * GEMM_TILE. The launch needs (size / GEMM_TILE)^2 threads; additional threads do nothing. */
struct gpu_gemm {
    uint64_t a, b, c; /* device addresses */
    uint64_t size;
};

/* Kernel gpu_spin computes for `rounds` rounds on one thread and writes the result, which keeps the stream busy. */
struct gpu_spin {
    uint64_t out; /* device address of a 64-bit word */
    uint64_t rounds;
};

/* Kernel gpu_checksum adds gpu_word_sum() of each word to *sum. The result does not depend on the number of threads. */
struct gpu_checksum {
    uint64_t words; /* device address of the first word */
    uint64_t count;
    uint64_t word_bytes; /* 2 or 4 */
    uint64_t sum;        /* device address of a 64-bit word */
};

#ifdef __CUDACC__
#define GPU_BOTH __host__ __device__
#else
#define GPU_BOTH
#endif

/* Hashes the value `word` at index `at`. Changing a word, or exchanging two different words, changes the sum of the
 * hashes (except with a probability of about 2^-64). */
GPU_BOTH static inline uint64_t gpu_word_sum(uint64_t word, uint64_t at)
{
    uint64_t x = (word + 1) * 0x9e3779b97f4a7c15u + at * 0xd1342543de82ef95u;
    x = (x ^ x >> 32) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 29;
}

#endif
