/* SPDX-License-Identifier: MIT */
#if defined(__x86_64__)
#define LANES_BYTES 64
#define COPY_KERNELS copy_avx512
#define COPY_NAME "avx512"
#include "copy_lanes.h"
#endif
