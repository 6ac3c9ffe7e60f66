/* SPDX-License-Identifier: MIT */
/* bench_launches.c - the kernels of the benchmark (bench/harness/gpu_kernels.cu) for the emulated driver. */
#include "harness/gpu_kernels_ptx.h"
#include "launches.h"
#include "software.h"
#include "support/gpu_kernels_host.h"

static uint32_t threads_of(const unsigned grid[3], const unsigned block[3])
{
    return grid[0] * block[0];
}

static unsigned gemm_ranges(const void *arguments, const unsigned grid[3], const unsigned block[3],
                            struct range ranges[RANGES_MOST])
{
    const struct gpu_gemm *work = arguments;
    const uint64_t bytes = work->size * work->size * sizeof(float);
    ranges[0] = (struct range){work->a, bytes, false};
    ranges[1] = (struct range){work->b, bytes, false};
    ranges[2] = (struct range){work->c, bytes, true};
    return 3;
}

static void gemm_translate(void *arguments, uint64_t (*memory_of)(uint64_t address))
{
    struct gpu_gemm *work = arguments;
    work->a = memory_of(work->a);
    work->b = memory_of(work->b);
    work->c = memory_of(work->c);
}

static void gemm_run(const void *arguments, const unsigned grid[3], const unsigned block[3])
{
    gpu_gemm_host(arguments, threads_of(grid, block));
}

static unsigned spin_ranges(const void *arguments, const unsigned grid[3], const unsigned block[3],
                            struct range ranges[RANGES_MOST])
{
    ranges[0] = (struct range){((const struct gpu_spin *)arguments)->out, 8, true};
    return 1;
}

static void spin_translate(void *arguments, uint64_t (*memory_of)(uint64_t address))
{
    struct gpu_spin *work = arguments;
    work->out = memory_of(work->out);
}

static void spin_run(const void *arguments, const unsigned grid[3], const unsigned block[3])
{
    gpu_spin_host(arguments, threads_of(grid, block));
}

static unsigned checksum_ranges(const void *arguments, const unsigned grid[3], const unsigned block[3],
                                struct range ranges[RANGES_MOST])
{
    const struct gpu_checksum *work = arguments;
    ranges[0] = (struct range){work->words, work->count * work->word_bytes, false};
    ranges[1] = (struct range){work->sum, 8, true};
    return 2;
}

static void checksum_translate(void *arguments, uint64_t (*memory_of)(uint64_t address))
{
    struct gpu_checksum *work = arguments;
    work->words = memory_of(work->words);
    work->sum = memory_of(work->sum);
}

static void checksum_run(const void *arguments, const unsigned grid[3], const unsigned block[3])
{
    gpu_checksum_host(arguments, threads_of(grid, block));
}

const struct kernel bench_kernels[BENCH_KERNELS] = {
    {gpu_kernels_ptx, "gpu_gemm", sizeof(struct gpu_gemm), gemm_ranges, gemm_run, gemm_translate, NULL},
    {gpu_kernels_ptx, "gpu_spin", sizeof(struct gpu_spin), spin_ranges, spin_run, spin_translate, NULL},
    {gpu_kernels_ptx, "gpu_checksum", sizeof(struct gpu_checksum), checksum_ranges, checksum_run, checksum_translate,
     NULL},
};
