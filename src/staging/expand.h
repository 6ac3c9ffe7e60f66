/*
 * expand.h - from a slot, rows of 16- or 32-bit tokens and the marks of their documents, to what a trainer takes: inputs,
 * targets, positions, documents and masks of 32 or 64 bits. Host side; pure functions. Nothing is read or written outside.
 */
#ifndef TOKMAP_STAGING_EXPAND_H
#define TOKMAP_STAGING_EXPAND_H

#include <stdint.h>

#include "expand_arguments.h"
#include "tokmap/tokmap.h"

/* Widens count tokens: in[0 .. count) to each output given. The pair form writes in[0 .. count) to inputs and
 * in[1 .. count + 1) to targets in one pass. */
typedef void expand_one(const void *in, uint64_t count, void *out);
typedef void expand_pair(const void *in, uint64_t count, void *inputs, void *targets);
/* Writes 0, 1, .. count - 1. */
typedef void expand_count(uint64_t count, void *out);
/* Writes one number, that many times. */
typedef void expand_fill(uint32_t value, uint64_t count, void *out);

/* One set of instructions. First index: 0 for 16-bit tokens, 1 for 32-bit; second: enum tokmap_type. */
struct expand_kernels {
    const char *name;
    expand_one *one[2][2];
    expand_pair *pair[2][2];
    expand_count *count[2];
    expand_fill *fill[2];
};

/* The sets that this processor can run, the best first; NULL past the last, which is the plain C one. */
const struct expand_kernels *expand_variant(unsigned number);

/* Writes the outputs of a batch. All addresses are the host's; any alignment of the outputs. */
void expand_batch(const struct expand_kernels *kernels, const struct expand_arguments *work);

#endif
