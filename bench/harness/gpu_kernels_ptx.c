/* SPDX-License-Identifier: MIT */
/*
 * gpu_kernels_ptx.c - the bytes of gpu_kernels.ptx and a terminating zero, and those of gpu_kernels.fatbin.
 *
 * The assembler includes the files (.incbin). What is in the tree is therefore what is in the program, and a build
 * needs neither a CUDA compiler nor a generator that turns files into C.
 */
#include "gpu_kernels_ptx.h"

__asm__(".section .rodata\n"
        ".hidden gpu_kernels_ptx\n"
        ".globl gpu_kernels_ptx\n"
        ".type gpu_kernels_ptx, %object\n"
        "gpu_kernels_ptx:\n"
        ".incbin \"bench/harness/gpu_kernels.ptx\"\n"
        ".byte 0\n"
        ".size gpu_kernels_ptx, . - gpu_kernels_ptx\n"
        ".balign 16\n"
        ".hidden gpu_kernels_fatbin\n"
        ".globl gpu_kernels_fatbin\n"
        ".type gpu_kernels_fatbin, %object\n"
        "gpu_kernels_fatbin:\n"
        ".incbin \"bench/harness/gpu_kernels.fatbin\"\n"
        ".size gpu_kernels_fatbin, . - gpu_kernels_fatbin\n"
        ".text\n");
