/* SPDX-License-Identifier: MIT */
/*
 * bpe_merge.h - the merges of one piece of bytes, or of several short pieces at once.
 *
 * Nothing here looks into caches or at bpe_unreached(): the ids are those that merging alone gives.
 */
#ifndef TOKMAP_BPE_BPE_MERGE_H
#define TOKMAP_BPE_BPE_MERGE_H

#include "bpe_model.h"
#include "bpe_windows.h"

#define BPE_SHORT 64 /* pieces of up to this many bytes need no scratch */

/* ---- one piece ---- */

/* Memory that merging needs for some pieces of more than BPE_SHORT bytes. All zero before first use; it grows as
 * needed, which only unusual vocabularies make large. The owner frees `memory`. Used by one thread at a time. */
struct bpe_scratch {
    void *memory;
    size_t bytes;
    bool (*stop)(void *user); /* looked at between windows; true: merging ends as if memory ran out. NULL: never */
    void *user;
    bool stopped;                  /* `stop` returned true */
    bpe_merge_many_function *many; /* if the model has one: merges the windows of long pieces of bytes; or NULL */
};

/* Looks at scratch->stop. */
static inline bool bpe_scratch_stops(struct bpe_scratch *scratch)
{
    scratch->stopped = scratch->stop && scratch->stop(scratch->user);
    return scratch->stopped;
}

/* A bpe_merge_function for models of byte-level BPE. */
bpe_merge_function bpe_merge;

/* Does the same for more than BPE_SHORT bytes, but writes ids of 32 bits (wide) or 16 bits straight to `tokens`, which
 * has room for `count`. Needs no memory that grows with the piece. Raises *largest to the largest id, if it is larger.
 * Returns the number of ids, or 0 if memory ran out. */
size_t bpe_merge_long(const struct bpe_model *model, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                      void *tokens, bool wide, uint32_t *largest);

#if defined(__x86_64__)
/* For byte-level models that have a token for each byte and whose ids are below BPE_IDS - 1. */
bpe_merge_many_function bpe_merge_many_avx2;
bpe_merge_many_function bpe_merge_many_vbmi;
#endif

#endif
