/* SPDX-License-Identifier: MIT */
/*
 * sp_merge.h - the merges of one piece of characters, or of several short pieces at once.
 */
#ifndef TOKMAP_SENTENCEPIECE_SP_MERGE_H
#define TOKMAP_SENTENCEPIECE_SP_MERGE_H

#include "bpe/bpe_merge.h"
#include "sp_model.h"

/* A bpe_merge_function; `model` must be the head of a struct sp_model. */
bpe_merge_function sp_merge;

/* Merges `count` bytes and writes the first two symbols that are left to `symbols`, and the offset at which the
 * second one begins to *border. Returns how many symbols are left, or 0 if memory ran out. With fewer than two
 * symbols the rest is not meaningful. */
size_t sp_merge_symbols(const struct sp_model *model, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                        uint32_t symbols[2], uint32_t *border);

/* Destination of ids, in their final width. */
struct sp_ids {
    void *tokens;
    size_t count;
    uint32_t largest;
    bool wide; /* 32 bits each, else 16 */
};

/* Appends the ids of a piece of any length to `ids`, which has room for `count` more. The scratch grows with the
 * piece only for unusual vocabularies. Returns false if memory ran out. */
bool sp_merge_long(const struct sp_model *model, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                   struct sp_ids *ids);

#if defined(__x86_64__)
/* For models without user-defined pieces whose `tied` is not BPE_NONE. */
bpe_merge_many_function sp_merge_many_vbmi;
#endif

#endif
