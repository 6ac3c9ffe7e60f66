/* SPDX-License-Identifier: MIT */
/*
 * expand_ptx.c - the bytes of expand.ptx and a terminating zero, and those of expand.fatbin. The assembler includes the
 * files, so the tree contains the PTX as readable text, and a build needs neither a CUDA compiler nor a program that
 * turns files into C.
 */
#include "expand_ptx.h"

__asm__(".section .rodata\n"
        ".hidden expand_ptx\n"
        ".globl expand_ptx\n"
        ".type expand_ptx, %object\n"
        "expand_ptx:\n"
        ".incbin \"src/cuda/expand.ptx\"\n"
        ".byte 0\n"
        ".size expand_ptx, . - expand_ptx\n"
        ".balign 16\n"
        ".hidden expand_fatbin\n"
        ".globl expand_fatbin\n"
        ".type expand_fatbin, %object\n"
        "expand_fatbin:\n"
        ".incbin \"src/cuda/expand.fatbin\"\n"
        ".size expand_fatbin, . - expand_fatbin\n"
        ".text\n");
