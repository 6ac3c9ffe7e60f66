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

#endif
