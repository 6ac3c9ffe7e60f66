/* SPDX-License-Identifier: MIT */
/*
 * expand.h - writes the outputs of a batch on the host: from a slot, which has rows of 16- or 32-bit tokens and marks
 * of the documents in them, to the inputs, targets, positions, document numbers, and masks of 32 or 64 bits that a
 * trainer takes. Pure functions, which read only the slot and write only the outputs. Any thread.
 *
 * expand_arguments.h describes the slot; expand.c has an example. src/cuda/expand.cu does the same on a GPU.
 */
#ifndef TOKMAP_STAGING_EXPAND_H
#define TOKMAP_STAGING_EXPAND_H

#include <stdint.h>

#include "expand_arguments.h"
#include "tokmap/tokmap.h"

/* The functions below take outputs at any alignment. */

/* Widens in[0 .. count) to out[0 .. count). Returns the largest id that it has stored, or 0 if count is 0. Each id is
 * loaded once, so what is stored is what was compared, even if another process changes the file that `in` maps. */
typedef uint32_t expand_one(const void *in, uint64_t count, void *out);
/* Widens in[0 .. count) to inputs and in[1 .. count + 1) to targets, in one pass, and returns the largest, as above.
 * after: as many tokens that are widened next, which are prefetched as is best for the processor; NULL: none are. */
typedef uint32_t expand_pair(const void *in, uint64_t count, const void *after, void *inputs, void *targets);
/* Does what a pair does, but writes TOKMAP_IGNORE in place of each target whose bit is 1. Bit j is bit j mod 64 of word
 * j / 64. Bits from `count` on are ignored. */
typedef void expand_pair_except(const void *in, const uint64_t *bits, uint64_t count, void *inputs, void *targets);
/* Writes 0 where a bit is 1, and 1 where it is 0, for `count` bits as above. */
typedef void expand_zeros(const uint64_t *bits, uint64_t count, void *out);
/* Writes first, first + 1, .. first + count - 1. */
typedef void expand_count(uint64_t first, uint64_t count, void *out);
/* Writes the value `count` times, of 32-bit outputs its lower half. */
typedef void expand_fill(int64_t value, uint64_t count, void *out);
/* Writes the value to those of `count` elements whose bit is 1, and leaves all other elements as they are. */
typedef void expand_put(const uint64_t *bits, int64_t value, uint64_t count, void *out);
/* Widens in[j + 1 + k] to out[j * ahead + k], for j < count and k < ahead. in has count + ahead tokens, ahead >= 1. */
typedef void expand_ahead(const void *in, uint64_t count, uint64_t ahead, void *out);

/* The functions for one instruction set. The first index is 0 for 16-bit and 1 for 32-bit tokens, the last is 0 for
 * outputs of int32_t and 1 for int64_t. */
struct expand_kernels {
    const char *name;
    expand_one *one[2][2];
    expand_pair *pair[2][2];
    expand_pair_except *pair_except[2][2];
    expand_zeros *zeros[2];
    expand_count *count[2];
    expand_fill *fill[2];
    expand_put *put[2];
    expand_ahead *ahead[2][2];
};

/* Returns the kernels that this processor can run and TOKMAP_CPU allows, one set per number from 0, the fastest first.
 * The last set is plain C; larger numbers return NULL. The sets are static. */
const struct expand_kernels *expand_variant(unsigned number);

/* Writes the outputs of a batch. All addresses in `work` are host addresses; outputs may have any alignment. */
void expand_batch(const struct expand_kernels *kernels, const struct expand_arguments *work);

/* ---- kernels that need instructions that not every processor has ---- */

/* The kernels in plain C, for kernels of other instruction sets that have no better way. */
extern const struct expand_kernels expand_plain;

#if defined(__x86_64__)
extern const struct expand_kernels expand_avx2;   /* needs CPU_AVX2 */
extern const struct expand_kernels expand_avx512; /* needs CPU_AVX512 */
#endif

/* Returns the bits of the elements from j on, of which the first `lanes` are right. Element j + lanes - 1 exists. */
static inline uint64_t expand_bits_from(const uint64_t *bits, uint64_t j, uint64_t lanes)
{
    const uint64_t word = bits[j / 64] >> j % 64;
    return j % 64 + lanes > 64 ? word | bits[j / 64 + 1] << (64 - j % 64) : word;
}

#endif
