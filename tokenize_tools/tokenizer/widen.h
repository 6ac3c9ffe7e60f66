/* widen.h - bytes to 16-bit tokens of the same value: all that the byte tokenizer does, by the widest instructions. */
#ifndef TOKMAP_TOKENIZER_WIDEN_H
#define TOKMAP_TOKENIZER_WIDEN_H

#include <stddef.h>
#include <stdint.h>

/* into[i] = from[i]; returns the largest of them, 0 if there are none. into needs no alignment beyond its type's. */
typedef uint32_t widen_function(uint16_t *into, const uint8_t *from, size_t count);

widen_function widen_scalar;
#if defined(__x86_64__)
widen_function widen_avx2;
#elif defined(__aarch64__)
widen_function widen_neon;
#endif

/* The best that this processor has. */
widen_function *widen_choose(void);

#endif
