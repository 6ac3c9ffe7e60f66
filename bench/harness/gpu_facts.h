/* SPDX-License-Identifier: MIT */
/* gpu_facts.h - what a GPU is and how it is connected, as far as the driver and the kernel report it. */
#ifndef TOKMAP_BENCH_HARNESS_GPU_FACTS_H
#define TOKMAP_BENCH_HARNESS_GPU_FACTS_H

#include "gpu.h"

/* Numbers are NAN and texts "" where they are not known. */
struct gpu_facts {
    char name[128];
    char kernel_driver[64];             /* version of the kernel's driver: "580.65.06" */
    double capability;                  /* compute capability: 9.0 */
    double cuda;                        /* the newest CUDA version that the driver supports: 13.0 */
    double link_gt_s, link_gt_s_most;   /* speed of a lane of the PCIe link now, and at most */
    double link_lanes, link_lanes_most; /* its width */
    double clock_mhz;                   /* highest clock of the multiprocessors */
    bool coherent;                      /* the GPU reads all memory of the host, coherently */
};

/* Fills in *facts for an open GPU. A GPU that has nothing to do can report a slower link than it has under load. */
void gpu_facts_read(struct gpu *gpu, struct gpu_facts *facts);

/* Writes what gpu_open() does not print, as one line: driver, link, coherence, clock. Returns text. */
const char *gpu_facts_line(const struct gpu_facts *facts, char *text, size_t capacity);

/* Returns the generation of a PCIe link with this speed of a lane, 1 for 2.5 GT/s to 6 for 64; 0 for other speeds. */
unsigned gpu_link_generation(double gt_s);

#endif
