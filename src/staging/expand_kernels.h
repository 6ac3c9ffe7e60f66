/* expand_kernels.h - the kernels of expand.h that need instructions not every processor has; expand_variant() chooses.
 * */
#ifndef TOKMAP_STAGING_EXPAND_KERNELS_H
#define TOKMAP_STAGING_EXPAND_KERNELS_H

#include "expand.h"

/* The kernels in plain C, for kernels of other instruction sets that have no better way. */
extern const struct expand_kernels expand_plain;

#if defined(__x86_64__)
extern const struct expand_kernels expand_avx2;   /* needs CPU_AVX2 */
extern const struct expand_kernels expand_avx512; /* needs CPU_AVX512 */
#endif

/* Returns the bits of the elements from j on, of which the first `lanes` are right. Element j + lanes - 1 exists. */
static inline uint64_t expand_bits_from(const uint64_t *bits, uint64_t j, uint64_t lanes)
{
    const uint64_t word = bits[j / 64] >> j % 64;
    return j % 64 + lanes > 64 ? word | bits[j / 64 + 1] << (64 - j % 64) : word;
}

#endif
