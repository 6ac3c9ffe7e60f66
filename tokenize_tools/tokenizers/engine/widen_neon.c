/* SPDX-License-Identifier: MIT */
/* widen_neon.c - the same with NEON, 16 bytes per step. */
#include "widen.h"

#if defined(__aarch64__)
#include <arm_neon.h>

uint32_t widen_neon(uint16_t *into, const uint8_t *from, size_t count)
{
    uint8x16_t most = vdupq_n_u8(0);
    size_t i = 0;
    for (; count - i >= 16; i += 16) {
        const uint8x16_t bytes = vld1q_u8(from + i);
        most = vmaxq_u8(most, bytes);
        vst1q_u16(into + i, vmovl_u8(vget_low_u8(bytes)));
        vst1q_u16(into + i + 8, vmovl_high_u8(bytes));
    }
    const uint32_t rest = widen_scalar(into + i, from + i, count - i), largest = vmaxvq_u8(most);
    return largest > rest ? largest : rest;
}
#else
typedef int widen_neon_is_for_aarch64;
#endif
