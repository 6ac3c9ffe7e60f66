/*
 * gpu_kernels.h - the kernels that the benchmark brings along (gpu_kernels.cu), and what each is told. A launch gets its
 * struct by value: 64-bit words, no padding. Plain C that a CUDA compiler takes too.
 */
#ifndef TOKMAP_BENCH_HARNESS_GPU_KERNELS_H
#define TOKMAP_BENCH_HARNESS_GPU_KERNELS_H

#include <stdint.h>

#define GPU_BLOCK 256 /* threads of a block */
#define GEMM_TILE 8   /* each thread of gpu_gemm makes so many rows of so many columns */

/* c = a b + c, square matrices of `size` rows of floats; size a multiple of GEMM_TILE. Wants (size / GEMM_TILE)^2
 * threads. */
struct gpu_gemm {
    uint64_t a, b, c; /* device addresses */
    uint64_t size;
};

/* Computes for so many rounds, one thread, and writes what came out. */
struct gpu_spin {
    uint64_t out; /* a 64-bit word */
    uint64_t rounds;
};

/* Adds to *sum what gpu_word_sum() says of each word. Any number of threads gives the same. */
struct gpu_checksum {
    uint64_t words; /* device address of them */
    uint64_t count;
    uint64_t word_bytes; /* 2 or 4 */
    uint64_t sum;        /* a 64-bit word */
};

#ifdef __CUDACC__
#define GPU_BOTH __host__ __device__
#else
#define GPU_BOTH
#endif

/* Of word `word` at place `at`: another word, another place or two that changed places give another sum. */
GPU_BOTH static inline uint64_t gpu_word_sum(uint64_t word, uint64_t at)
{
    uint64_t x = (word + 1) * 0x9e3779b97f4a7c15u + at * 0xd1342543de82ef95u;
    x = (x ^ x >> 32) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 29;
}

#ifndef __CUDACC__
/* The text of the kernels for a driver to compile: gpu_kernels.ptx. Zero-terminated. */
extern const char gpu_kernels_ptx[];
#endif

#endif
