/* SPDX-License-Identifier: MIT */
#if defined(__x86_64__)
#define LANES_BYTES 64
#define MINHASH_KERNEL minhash_avx512
#define MINHASH_WAYS_KERNEL minhash_ways_avx512
#include "minhash_lanes.h"
#endif
