/* SPDX-License-Identifier: MIT */
#include "hash_variants.h"

#if defined(__x86_64__)
#define XXH_INLINE_ALL
#define XXH_VECTOR XXH_AVX512
#include <xxhash.h>

HASH_VARIANT(hash_functions_avx512, "avx512");
#endif
