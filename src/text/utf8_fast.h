/* utf8_fast.h - UTF-8 validation by vector instructions. It says whether the whole text is valid, but not where it is
 * invalid. */
#ifndef TOKMAP_TEXT_UTF8_FAST_H
#define TOKMAP_TEXT_UTF8_FAST_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__x86_64__)
bool utf8_valid_avx2(const char *bytes, size_t count); /* only if cpu_has(CPU_AVX2) */
#endif

#endif
