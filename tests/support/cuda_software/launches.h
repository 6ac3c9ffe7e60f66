/* SPDX-License-Identifier: MIT */
/* launches.h - a kernel for the tests of the emulated driver: "add", in the module CUDA_SOFTWARE_IMAGE. */
#ifndef TESTS_CUDA_SOFTWARE_LAUNCHES_H
#define TESTS_CUDA_SOFTWARE_LAUNCHES_H

#include <stdint.h>

#define CUDA_SOFTWARE_IMAGE "// cuda_software: kernels of its own tests"

/* into[i] = from[i] + number, for i < words. */
struct cuda_software_add {
    uint64_t into, from, words, number;
};

#endif
