/*
 * gpu_kernels_ptx.c - gpu_kernels.ptx, byte for byte, followed by a zero.
 *
 * The assembler includes the file (.incbin). The text in the tree is therefore the text in the program, and a build
 * needs neither a CUDA compiler nor a generator that turns text into C.
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
        ".text\n");
