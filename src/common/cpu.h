/* SPDX-License-Identifier: MIT */
/*
 * cpu.h - which instruction sets this process uses.
 *
 * Several functions exist once per instruction set, in files called *_avx2.c, *_avx512.c, *_vbmi.c, and *_neon.c. This
 * unit alone decides which of them run, so one environment variable caps them all: TOKMAP_CPU=scalar, avx2, avx512, or
 * neon. It is meant for bug reports ("does it also happen with TOKMAP_CPU=scalar?") and for tests. It never changes a
 * result, only the speed.
 *
 * Each variant includes the ones before it, so code asks `cpu_has(CPU_AVX2)`, and tests loop from CPU_SCALAR to
 * cpu_variant_best(). Any thread may call these functions.
 */
#ifndef TOKMAP_COMMON_CPU_H
#define TOKMAP_COMMON_CPU_H

#include <stdbool.h>
#include <stddef.h>

/* The instructions that a file with the suffix is compiled with (see the Makefile), and that the processor must
 * therefore have. */
#if defined(__aarch64__)
enum cpu_variant { CPU_SCALAR, CPU_NEON, CPU_VARIANTS };
#else
enum cpu_variant {
    CPU_SCALAR,
    CPU_AVX2,   /* AVX2, AES, BMI1, BMI2, POPCNT */
    CPU_AVX512, /* and AVX-512 F, BW, VL, DQ */
    CPU_VBMI,   /* and AVX-512 VBMI, VBMI2; VAES; GFNI; LZCNT. TOKMAP_CPU=avx512 allows this variant, too. */
    CPU_VARIANTS
};
#endif

/* Returns the best variant that the processor has and TOKMAP_CPU allows. The first call finds it; it stays the same for
 * the life of the process. */
enum cpu_variant cpu_variant_best(void);

static inline bool cpu_has(enum cpu_variant variant)
{
    return cpu_variant_best() >= variant;
}

/* Returns variant `number` of functions that exist for AVX-512, for AVX2, and in plain C, counted from the best one
 * that this process uses; NULL after the last. */
#if defined(__x86_64__)
#define CPU_KERNELS(number, avx512, avx2, plain) cpu_kernels((number), (const void *const[]){avx512, avx2, plain})
static inline const void *cpu_kernels(unsigned number, const void *const kernels[3])
{
    number += cpu_has(CPU_AVX512) ? 0 : cpu_has(CPU_AVX2) ? 1 : 2;
    return number < 3 ? kernels[number] : NULL;
}
#else
#define CPU_KERNELS(number, avx512, avx2, plain) ((number) ? NULL : (plain))
#endif

/* "scalar", "AVX2", "AVX-512", or "NEON": for messages and reports. */
const char *cpu_variant_name(enum cpu_variant variant);

/* Returns false if TOKMAP_CPU is set to a value that this machine does not know. The library ignores the variable then,
 * because it must not print; commands refuse to start. */
bool cpu_environment_is_valid(void);

/* Returns the values of TOKMAP_CPU on this machine, for messages: "scalar, avx2, or avx512". */
const char *cpu_environment_values(void);

#endif
