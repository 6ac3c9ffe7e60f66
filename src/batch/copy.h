/*
 * copy.h - copying tokens and finding the largest of them in one pass, so that checking ids against the vocabulary
 * costs no second look at the bytes. Pure functions; any alignment; nothing is read or written outside.
 */
#ifndef TOKMAP_BATCH_COPY_H
#define TOKMAP_BATCH_COPY_H

#include <stdint.h>

struct copy_kernels {
    const char *name;
    /* Copies count tokens of 16 or 32 bits, which do not overlap; returns the largest, 0 for none. */
    uint32_t (*copy16)(void *into, const void *from, uint64_t count);
    uint32_t (*copy32)(void *into, const void *from, uint64_t count);
    /* The largest only. */
    uint32_t (*largest16)(const void *from, uint64_t count);
    uint32_t (*largest32)(const void *from, uint64_t count);
};

/* The sets of instructions that this processor can run, the best first; NULL past the last, which is the plain C
 * one. */
const struct copy_kernels *copy_variant(unsigned number);

#endif
