/* SPDX-License-Identifier: MIT */
/*
 * form.h - what a batch needs of a slot: it follows from its rows and its sequence length, which differ between the
 * phases of a run, and from what is constant for a loader. Pure functions.
 */
#ifndef TOKMAP_LOADER_FORM_H
#define TOKMAP_LOADER_FORM_H

#include <stdbool.h>

#include "staging/ring.h"

/* Constant for a loader. */
struct form_needs {
    uint64_t lookahead;
    uint64_t cu_elements; /* 0 if cu_seqlens is not requested */
    uint32_t width;       /* bytes of a token in a row */
    uint32_t fields;
    bool mask_targets;
    bool masked; /* a source has a mask stream */
    bool bounds; /* some rows have padding, or count only their last targets */
};

struct form {
    uint64_t seq_len, row_tokens;
    struct ring_shape shape;
    struct ring_layout layout;
};

/* Tokens of a row for which some field needs marks. A target counts too, because a document may begin with it. */
static inline uint64_t form_marked_tokens(const struct form_needs *needs, uint64_t seq_len)
{
    const uint64_t ahead = needs->fields & TOKMAP_TARGETS_AHEAD ? needs->lookahead : needs->lookahead > 0;
    return seq_len + ahead;
}

/* Targets of a row for which some field needs the bits of a mask. */
static inline uint64_t form_masked_targets(const struct form_needs *needs, uint64_t seq_len)
{
    return form_marked_tokens(needs, seq_len) - 1;
}

/* Returns whether all outputs follow from the tokens of a row alone, so that a row need not be stored to write them.
 * Rows of padding have bounds. */
static inline bool form_is_direct(const struct form_needs *needs)
{
    const uint32_t others = TOKMAP_TARGETS | TOKMAP_SOURCE_IDS;
    return (needs->fields | others) == (TOKMAP_INPUTS | others) && !needs->mask_targets && !needs->bounds;
}

/* Fills *form for batches of up to `rows` rows. Returns false if a size overflows. */
bool form_make(struct form *form, const struct form_needs *needs, uint64_t rows, uint64_t seq_len);

#endif
