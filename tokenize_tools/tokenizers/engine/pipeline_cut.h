/* SPDX-License-Identifier: MIT */
/*
 * pipeline_cut.h - finds places where a long document can be cut without changing its ids. pipeline_cut.c has the
 * proof.
 */
#ifndef TOKMAP_ENGINE_PIPELINE_CUT_H
#define TOKMAP_ENGINE_PIPELINE_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline_parts.h"

#define CUT_RIGHTS 5 /* the characters before which a cut is possible: space, newline, and three CJK marks */

/* Cuts that a tokenizer's parts allow. Immutable after pipeline_cuts_find; points to the engine of the parts. */
struct pipeline_cuts {
    bool rights[CUT_RIGHTS]; /* true for characters that may begin the second part */
    bool composes;           /* text is normalized to NFC */
    const struct text_engine *engine;
};

/* Fills *cuts for a tokenizer with these parts; `specials` says whether special tokens are searched for in the text.
 * Returns false if documents of this tokenizer cannot be cut anywhere; pipeline_cut must then not be called. */
bool pipeline_cuts_find(struct pipeline_cuts *cuts, const struct pipeline_parts *parts, bool specials);

/* Returns the last offset in text[1..count) where the text may be cut, or 0 if its last 64 KiB have no cut. The
 * result is right whatever text follows. */
size_t pipeline_cut(const struct pipeline_cuts *cuts, const uint8_t *text, size_t count);

#endif
