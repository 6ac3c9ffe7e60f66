/* SPDX-License-Identifier: MIT */
#if defined(__x86_64__)
#define LANES_BYTES 32
#define MINHASH_KERNEL minhash_avx2
#define MINHASH_WAYS_KERNEL minhash_ways_avx2
#include "minhash_lanes.h"
#endif
