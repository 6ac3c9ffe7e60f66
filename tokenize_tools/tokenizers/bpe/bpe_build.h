/* SPDX-License-Identifier: MIT */
/*
 * bpe_build.h - makes a bpe_model of what a vocabulary file says.
 */
#ifndef TOKMAP_BPE_BPE_BUILD_H
#define TOKMAP_BPE_BPE_BUILD_H

#include "bpe_model.h"

/* Input of bpe_model_build(), which the loader of a vocabulary file fills in. Memory stays the loader's, which may free
 * it after bpe_model_build(), except own_bytes and own_offsets. */
struct bpe_source {
    const char *path;        /* for errors */
    uint32_t vocabulary;     /* ids are below it */
    const uint8_t *bytes;    /* the texts of all tokens in the order of ids, without gaps */
    const uint32_t *offsets; /* vocabulary + 1: where each text begins. An id has an empty text if it has no token or
                                if no text becomes it, such as a special token. */
    /* NULL, or `bytes`, with room for 16 more bytes, and `offsets`, both from malloc(): bpe_model_build() keeps or
     * frees them, on failure too. Of a large vocabulary there is then one copy of the texts, not two. */
    uint8_t *own_bytes;
    uint32_t *own_offsets;
    const struct bpe_merge *merges; /* the list of merges, in order; NULL: merges are by ranks */
    uint32_t merge_count;
    bool merges_checked; /* the loader has checked that in each merge the ids are below `vocabulary`, the texts of left
                            and right are not empty, and together they are the text of the result */
    bool lacks_bytes;    /* some bytes may have no token; their byte_ids are BPE_NONE. An encoder removes these
                            bytes from the text first. */
    bool whole;          /* a piece that equals a token becomes this token, whatever merging gives (always true by
                            ranks) */
    struct split_rules rules;
};

/* Builds a model; free it with bpe_model_free(). *model is NULL on failure. Statuses: OK, ERROR_FORMAT (a byte has no
 * token, or a merge's texts do not fit), ERROR_LIMIT (too many ids or merges), ERROR_MEMORY. */
enum tokmap_status bpe_model_build(struct bpe_model **model, const struct bpe_source *source,
                                   struct tokmap_error *error);

#endif
