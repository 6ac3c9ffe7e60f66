/* SPDX-License-Identifier: MIT */
/* widen.h - converts bytes to 16-bit ids of the same value, which is all that the byte tokenizer does. */
#ifndef TOKMAP_ENGINE_WIDEN_H
#define TOKMAP_ENGINE_WIDEN_H

#include <stddef.h>
#include <stdint.h>

/* Sets into[i] = from[i] for i < count, and returns the largest of these values, 0 if count is 0. `into` needs no
 * more than the alignment of its type. The two must not overlap. */
typedef uint32_t widen_function(uint16_t *into, const uint8_t *from, size_t count);

widen_function widen_scalar;
#if defined(__x86_64__)
widen_function widen_avx2;
#elif defined(__aarch64__)
widen_function widen_neon;
#endif

/* Returns the fastest implementation that the processor has and TOKMAP_CPU allows. */
widen_function *widen_choose(void);

#endif
