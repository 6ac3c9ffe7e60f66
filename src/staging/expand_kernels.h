/* expand_kernels.h - the kernels of expand.h that need instructions not every processor has; expand_variant() chooses.
 * */
#ifndef TOKMAP_STAGING_EXPAND_KERNELS_H
#define TOKMAP_STAGING_EXPAND_KERNELS_H

#include "expand.h"

#if defined(__x86_64__)
extern const struct expand_kernels expand_avx2;   /* needs CPU_AVX2 */
extern const struct expand_kernels expand_avx512; /* needs CPU_AVX512 */
#endif

#endif
