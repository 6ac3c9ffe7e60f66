/* SPDX-License-Identifier: MIT */
/*
 * copy.h - copies tokens and finds the largest of them in one pass, so that the check of ids against the vocabulary
 * needs no second pass over the bytes. Pure functions. They accept any alignment, and access no byte outside the given
 * tokens.
 */
#ifndef TOKMAP_BATCH_COPY_H
#define TOKMAP_BATCH_COPY_H

#include <stdint.h>

struct copy_kernels {
    const char *name; /* "scalar", "avx2", "avx512" */
    /* Copy `count` tokens of 16 or 32 bits and return the largest of them, or 0 if count is 0. The two ranges must not
     * overlap. */
    uint32_t (*copy16)(void *into, const void *from, uint64_t count);
    uint32_t (*copy32)(void *into, const void *from, uint64_t count);
    /* Widens `count` tokens of 16 bits to 32 bits and returns the largest of them, or 0 if count is 0. The ranges may
     * overlap in one way: `from` may be the second half of the bytes of `into`. */
    uint32_t (*widen16)(void *into, const void *from, uint64_t count);
    /* Return the largest of `count` tokens, or 0 if count is 0, without a copy. */
    uint32_t (*largest16)(const void *from, uint64_t count);
    uint32_t (*largest32)(const void *from, uint64_t count);
};

/* Returns the variants that this processor can run, as far as TOKMAP_CPU allows them: number 0 is the fastest, and the
 * last one is plain C. Returns NULL for numbers past the last. The result is static. Any thread. */
const struct copy_kernels *copy_variant(unsigned number);

#endif
