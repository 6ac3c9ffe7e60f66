/* SPDX-License-Identifier: MIT */
/*
 * expand_case.h - batches to expand, laid out as in a slot, with the expected outputs. Those are computed token by
 * token from the starts of documents, as tokmap.h defines the fields, without any code of the library.
 */
#ifndef TOKMAP_SUPPORT_EXPAND_CASE_H
#define TOKMAP_SUPPORT_EXPAND_CASE_H

#include <stdbool.h>

#include "staging/expand_arguments.h"

/* Where documents start in a row, besides token 0. */
enum expand_documents {
    EXPAND_NONE,  /* nowhere */
    EXPAND_ALL,   /* at every token */
    EXPAND_FEW,   /* at one token in 150 */
    EXPAND_MANY,  /* at one token in 3 */
    EXPAND_EDGES, /* near the ends of words of 64 tokens */
    EXPAND_LAST,  /* at the last token of the row and after it */
    EXPAND_KINDS
};

enum {
    EXPAND_OUTPUTS = 10, /* in the order of the bits of TOKMAP_INPUTS, ... */
    EXPAND_FIELDS_ALL = 0x3ff
};

/* Which targets the mask of the dataset excludes. */
enum expand_bits {
    EXPAND_NO_BITS, /* the slot has none */
    EXPAND_BITS_NONE,
    EXPAND_BITS_ALL,
    EXPAND_BITS_RANDOM, /* one in two */
    EXPAND_BITS_RUNS,   /* runs of 1 to 100 */
    EXPAND_BITS_KINDS
};

/* The bounds of rows. */
enum expand_bounds {
    EXPAND_NO_EXTENTS, /* the slot has none */
    EXPAND_WHOLE,      /* every row counts from start to end */
    EXPAND_PADDED,     /* rows end in padding; some are nothing else */
    EXPAND_SCORED,     /* only the last targets count */
    EXPAND_BOTH,
    EXPAND_EXTENTS_KINDS
};

struct expand_shape {
    uint64_t rows, seq_len, lookahead; /* with lookahead 0 there are no targets and no loss_mask */
    uint32_t width, element;
    uint32_t fields; /* TOKMAP_INPUTS | ... */
    uint32_t mask_targets;
    uint32_t skew;                   /* each output begins this many bytes after a multiple of 64, */
    uint32_t skew_more;              /* plus this many for each output before it */
    uint64_t cu_spare;               /* elements of cu_seqlens beyond those of the documents */
    enum expand_documents documents; /* EXPAND_KINDS: each row has another kind */
    enum expand_bits bits;
    enum expand_bounds bounds;
    uint64_t seed;
};

struct expand_case {
    struct expand_shape shape;
    struct expand_arguments work; /* with addresses of this process; a test of a device replaces them */
    void *slot;
    uint64_t slot_bytes;            /* of the slot */
    uint64_t bytes[EXPAND_OUTPUTS]; /* of each output; 0: not requested */
    uint8_t *expected[EXPAND_OUTPUTS];
    uint8_t *memory[EXPAND_OUTPUTS];
    uint8_t *output[EXPAND_OUTPUTS];
};

/* Makes a case, whose outputs and their surroundings are filled with a byte. Ends the program if there is no memory. */
void expand_case_new(struct expand_case *made, const struct expand_shape *shape);
void expand_case_free(struct expand_case *made);
/* Fills the outputs and their surroundings with that byte again. */
void expand_case_reset(struct expand_case *made);
/* Returns NULL if every output is as expected and its surroundings are unchanged, otherwise a description in `text`. */
const char *expand_case_check(const struct expand_case *made, char text[200]);

#endif
