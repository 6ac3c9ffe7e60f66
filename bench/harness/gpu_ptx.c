/*
 * gpu_ptx.c - gpu_kernels.ptx, byte for byte, and a zero behind it. The assembler puts it in: so the file in the tree is
 * the text itself, and building needs neither a CUDA compiler nor a program that turns text into C.
 */
#include "gpu_kernels.h"

__asm__(".section .rodata\n"
        ".hidden gpu_kernels_ptx\n"
        ".globl gpu_kernels_ptx\n"
        ".type gpu_kernels_ptx, %object\n"
        "gpu_kernels_ptx:\n"
        ".incbin \"bench/harness/gpu_kernels.ptx\"\n"
        ".byte 0\n"
        ".size gpu_kernels_ptx, . - gpu_kernels_ptx\n"
        ".text\n");
