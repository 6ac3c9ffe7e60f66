/* SPDX-License-Identifier: MIT */
#if defined(__x86_64__)
#define LANES_BYTES 32
#define COPY_KERNELS copy_avx2
#define COPY_NAME "avx2"
#include "copy_lanes.h"
#endif
