/* SPDX-License-Identifier: MIT */
/*
 * form.h - what a batch needs of a slot: it follows from its rows and its sequence length, which differ between the
 * phases of a run, and from what is constant for a loader. Pure functions.
 */
#ifndef TOKMAP_LOADER_FORM_H
#define TOKMAP_LOADER_FORM_H

#include <stdbool.h>

#include "common/bytes.h"
#include "staging/ring.h"

#define FORM_ALIGN 64 /* where the tokens of a chunk of a list begin: see expand_arguments.h */
#define FORM_CU (TOKMAP_CU_SEQLENS | TOKMAP_CU_SEQLENS_SLICE)

/* Constant for a loader. */
struct form_needs {
    uint64_t lookahead;
    uint64_t cu_elements; /* 0 if cu_seqlens is not requested */
    uint32_t width;       /* bytes of a token in a row */
    uint32_t fields;
    bool mask_targets;
    bool masked;          /* some tokens are no targets: a source has a mask stream, or padding between documents */
    bool bounds;          /* some rows have padding, or count only their last targets */
    uint64_t slices;      /* ranks that share the columns of each row; 1: each has all of them */
    uint64_t chunks;      /* of equal size in which a rank has its columns */
    uint64_t chunks_most; /* of a row, where their sizes differ; else 0 */
};

/* To the backend, each chunk is a row, if all have one size: of `columns` columns and the tokens after them, row_tokens
 * in all. If their sizes differ, `columns` are all of the rank's, and as many tokens follow each chunk. */
struct form {
    uint64_t seq_len; /* of the run */
    uint64_t columns, row_tokens;
    struct ring_shape shape;
    struct ring_layout layout;
};

/* Returns the tokens of a row that are kept after those of a chunk. */
static inline uint64_t form_ahead(const struct form_needs *needs)
{
    const bool all = needs->slices == 1 || (needs->fields & TOKMAP_TARGETS_AHEAD);
    return all ? needs->lookahead : needs->lookahead > 0;
}

/* Returns whether rows have a bit for the label of a chunk's first column: see expand_arguments.h. */
static inline bool form_first_labels(const struct form_needs *needs)
{
    return needs->slices > 1 && (needs->fields & TOKMAP_LABELS);
}

/* Returns the element of a slot's cu_seqlens at which that of the slice begins. */
static inline uint64_t form_cu_slice_at(const struct form_needs *needs)
{
    return round_up(needs->cu_elements, 16);
}

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
