/* SPDX-License-Identifier: MIT */
#if defined(__x86_64__)
#define LANES_BYTES 64
#define SCAN_PART scan_part_avx512
#include "block_scan_lanes.h"
#endif
