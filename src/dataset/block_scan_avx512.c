/* SPDX-License-Identifier: MIT */
#if defined(__x86_64__)
#define SCAN_PART scan_part_avx512
#include "block_scan_lanes.h"
#endif
