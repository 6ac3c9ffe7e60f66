/* SPDX-License-Identifier: MIT */
/*
 * bpe_positions.h - from a bitmap to the numbers of its bits.
 */
#ifndef TOKMAP_BPE_BPE_POSITIONS_H
#define TOKMAP_BPE_BPE_POSITIONS_H

#include <stddef.h>
#include <stdint.h>

#define BPE_POSITIONS_SLACK 32

/* Writes the numbers of the bits that are set in `count` words, in ascending order. Returns how many; may write over
 * BPE_POSITIONS_SLACK more positions after them. */
typedef uint32_t bpe_positions_function(uint16_t *positions, const uint64_t *words, size_t count);
bpe_positions_function bpe_positions_scalar;
#if defined(__x86_64__)
bpe_positions_function bpe_positions_avx2; /* only if cpu_has(CPU_AVX2) */
bpe_positions_function bpe_positions_vbmi;
#endif

#endif
