/*
 * expand_case.h - batches to expand, as they lie in a slot, with what must come out: computed token by token from where
 * documents start, by the words of tokmap.h and nothing that the library has.
 */
#ifndef TOKMAP_SUPPORT_EXPAND_CASE_H
#define TOKMAP_SUPPORT_EXPAND_CASE_H

#include <stdbool.h>

#include "staging/expand_arguments.h"

/* Where documents start in a row; token 0 always does. */
enum expand_documents {
    EXPAND_NONE,    /* nowhere else */
    EXPAND_ALL,     /* at every token */
    EXPAND_FEW,     /* at one in some hundred */
    EXPAND_MANY,    /* at one in three */
    EXPAND_EDGES,   /* around the edges of words of 64 */
    EXPAND_LAST,    /* at the row's last token and behind it */
    EXPAND_KINDS
};

enum {
    EXPAND_OUTPUTS = 7,  /* inputs targets position_ids document_ids loss_mask rows cu_seqlens, as the fields' bits say */
    EXPAND_FIELDS_ALL = 0x7f
};

struct expand_shape {
    uint64_t rows, seq_len, lookahead; /* without lookahead: neither targets nor loss_mask */
    uint32_t width, element;
    uint32_t fields;                   /* TOKMAP_INPUTS | .. */
    uint32_t mask_targets;
    uint32_t skew;                     /* each output begins this many bytes past a multiple of 64 .. */
    uint32_t skew_more;                /* .. and each one this many more than the one before */
    uint64_t cu_spare;                 /* elements of cu_seqlens that the documents do not fill */
    enum expand_documents documents;   /* EXPAND_KINDS: each row another */
    uint64_t seed;
};

struct expand_case {
    struct expand_shape shape;
    struct expand_arguments work;   /* slot and outputs are this process's; a test for a device puts its own there */
    void *slot;
    uint64_t slot_bytes;            /* all of which belong to the batch */
    uint64_t bytes[EXPAND_OUTPUTS]; /* of each output; 0: not asked for */
    uint8_t *expected[EXPAND_OUTPUTS];
    uint8_t *memory[EXPAND_OUTPUTS];
    uint8_t *output[EXPAND_OUTPUTS];
};

/* The outputs are filled with what none of them holds. Ends the program if there is no memory. */
void expand_case_new(struct expand_case *made, const struct expand_shape *shape);
void expand_case_free(struct expand_case *made);
/* Fills the outputs with that again. */
void expand_case_reset(struct expand_case *made);
/* NULL if every output is what it must be and nothing around it was touched; else what is wrong, in `text`. */
const char *expand_case_check(const struct expand_case *made, char text[200]);

#endif
