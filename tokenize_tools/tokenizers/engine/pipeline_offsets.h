/* SPDX-License-Identifier: MIT */
/* pipeline_offsets.h - finds where the tokens of a text are, for tokenizer_offsets (tokenizer.h). */
#ifndef TOKMAP_ENGINE_PIPELINE_OFFSETS_H
#define TOKMAP_ENGINE_PIPELINE_OFFSETS_H

#include "pipeline_parts.h"

/* Data that the search works on. The states must not be in use, and have their usual settings again afterwards. */
struct pipeline_offsets {
    const struct pipeline_parts *parts;
    bool raw_pass, normalized_pass; /* as in pipeline.c: the pass can find added tokens */
    bool specials;                  /* special tokens in the text are tokens */
    bool wide;                      /* ids have 4 bytes, otherwise 2 */
    struct normalizer_state *normalizer;
    struct pretokenizer_state *pretokenizer;
    struct text_edits *trace; /* NORMALIZER_STEPS_MOST lists, kept between calls; zeros at first */
};

/* Finds offsets, with the contract of tokenizer_offsets. */
enum tokmap_status pipeline_offsets_find(const struct pipeline_offsets *how, const uint8_t *text, size_t bytes,
                                         enum tokenizer_where where, const void *ids, uint64_t count, uint64_t *begins,
                                         uint64_t *ends, struct tokmap_error *error);

#endif
