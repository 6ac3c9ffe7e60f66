/*
 * expand_ptx.c - expand.ptx, byte for byte, and a zero behind it. The assembler puts it in: so the file in the tree is the
 * text itself, and building needs neither a CUDA compiler nor a program that turns text into C.
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
