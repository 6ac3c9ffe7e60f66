/* SPDX-License-Identifier: MIT */
#if defined(__x86_64__)
#define LANES_BYTES 32
#define SCAN_PART scan_part_avx2
#include "block_scan_lanes.h"
#endif
