/* SPDX-License-Identifier: MIT */
#include "cpu.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* The best variant plus one, or 0 before the first call. Accessed atomically; every thread would store the same value.
 */
static int found_before;

/* Returns the best variant that TOKMAP_CPU allows, or -1 if its value is unknown. */
static int environment_cap(void)
{
    static const struct {
        const char *value;
        int variant;
    } caps[] = {
        {"scalar", CPU_SCALAR},
#if defined(__aarch64__)
        {"neon", CPU_NEON},
#else
        {"avx2", CPU_AVX2},
        {"avx512", CPU_VBMI},
#endif
    };
    const char *given = secure_getenv("TOKMAP_CPU");
    if (!given || !*given)
        return CPU_VARIANTS - 1;
    for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++)
        if (!strcmp(given, caps[i].value))
            return caps[i].variant;
    return -1;
}

#if defined(__x86_64__)
/* VAES and GFNI. Clang 14 cannot ask for "vaes". */
static bool has_vaes_gfni(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c >> 9 & 1) && (c >> 8 & 1);
}
#endif

/* Returns the best variant that the processor has. */
static int processor_variant(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2") ||
        !__builtin_cpu_supports("popcnt") || !__builtin_cpu_supports("aes"))
        return CPU_SCALAR;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
        return CPU_AVX2;
    /* GCC 12 cannot ask for "lzcnt"; every processor with AVX2 and BMI2 has it. */
    if (!__builtin_cpu_supports("avx512vbmi") || !__builtin_cpu_supports("avx512vbmi2") || !has_vaes_gfni())
        return CPU_AVX512;
    return CPU_VBMI;
#elif defined(__aarch64__)
    return CPU_NEON;
#else
    return CPU_SCALAR;
#endif
}

enum cpu_variant cpu_variant_best(void)
{
    const int found = __atomic_load_n(&found_before, __ATOMIC_RELAXED);
    if (found)
        return (enum cpu_variant)(found - 1);
    const int has = processor_variant(), allowed = environment_cap();
    const int best = allowed >= 0 && allowed < has ? allowed : has;
    __atomic_store_n(&found_before, best + 1, __ATOMIC_RELAXED);
    return (enum cpu_variant)best;
}

const char *cpu_variant_name(enum cpu_variant variant)
{
#if defined(__aarch64__)
    static const char *const names[CPU_VARIANTS] = {"scalar", "NEON"};
#else
    static const char *const names[CPU_VARIANTS] = {"scalar", "AVX2", "AVX-512", "AVX-512"};
#endif
    assert((unsigned)variant < CPU_VARIANTS);
    return names[variant];
}

bool cpu_environment_is_valid(void)
{
    return environment_cap() >= 0;
}

const char *cpu_environment_values(void)
{
#if defined(__aarch64__)
    return "scalar or neon";
#else
    return "scalar, avx2, or avx512";
#endif
}
