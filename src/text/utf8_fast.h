/* utf8_fast.h - validation by vector instructions, which says only yes or no. */
#ifndef TOKMAP_TEXT_UTF8_FAST_H
#define TOKMAP_TEXT_UTF8_FAST_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__x86_64__)
bool utf8_valid_avx2(const char *bytes, size_t count); /* on processors that have AVX2 */
#endif

#endif
