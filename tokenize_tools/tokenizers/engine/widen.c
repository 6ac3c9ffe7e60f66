/* SPDX-License-Identifier: MIT */
/* widen.c - the portable implementation, and the choice of an implementation. */
#include "widen.h"

#include "common/cpu.h"

uint32_t widen_scalar(uint16_t *into, const uint8_t *from, size_t count)
{
    uint8_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        largest = from[i] > largest ? from[i] : largest;
        into[i] = from[i];
    }
    return largest;
}

widen_function *widen_choose(void)
{
#if defined(__x86_64__)
    if (cpu_has(CPU_AVX2))
        return widen_avx2;
#elif defined(__aarch64__)
    if (cpu_has(CPU_NEON))
        return widen_neon;
#endif
    return widen_scalar;
}
