/* copy_lines.h - where the whole cache lines of a range begin; for copy_avx2.c and copy_avx512.c. */
#ifndef TOKMAP_BATCH_COPY_LINES_H
#define TOKMAP_BATCH_COPY_LINES_H

#include <stdint.h>

#define COPY_LINES_NONE UINT64_MAX

/* Returns the tokens of `width` bytes before the first whole line; COPY_LINES_NONE if no token begins at a line. */
static inline uint64_t copy_before_lines(const void *into, uint32_t width)
{
    const uint64_t bytes = -(uintptr_t)into % 64;
    return bytes % width ? COPY_LINES_NONE : bytes / width;
}

static inline uint32_t copy_larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

#endif
