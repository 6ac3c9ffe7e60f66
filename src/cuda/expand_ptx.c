/*
 * expand_ptx.c - the bytes of expand.ptx and a terminating zero. The assembler includes the file, so the tree contains
 * the PTX as readable text, and a build needs neither a CUDA compiler nor a program that turns the text into C.
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
        ".text\n");
