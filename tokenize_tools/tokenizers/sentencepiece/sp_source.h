/* SPDX-License-Identifier: MIT */
/*
 * sp_source.h - what the loader of a SentencePiece-style vocabulary fills in, for sp_engine.h.
 */
#ifndef TOKMAP_SENTENCEPIECE_SP_SOURCE_H
#define TOKMAP_SENTENCEPIECE_SP_SOURCE_H

#include "bpe/bpe_model.h"

/* Places where a space is put before a text; the vocabulary writes it as "▁". */
enum sp_prefix {
    SP_PREFIX_NEVER,
    SP_PREFIX_ALWAYS, /* of a normalizer: at the start of each stretch between added tokens found in the raw text */
    SP_PREFIX_UNLESS, /* of Metaspace: at the start of each stretch of text, unless it begins with one */
    SP_PREFIX_FIRST   /* of Metaspace: the same, but only at the start of the document */
};

/* The types of pieces in a .model file, with its numbers. */
enum sp_kind {
    SP_NORMAL = 1,
    SP_UNKNOWN = 2,
    SP_CONTROL = 3,
    SP_USER_DEFINED = 4, /* found before anything merges, the longest first; never merges with anything */
    SP_UNUSED = 5,
    SP_BYTE = 6
};

/* All memory stays the loader's, which may free it after sp_model_build(). */
struct sp_source {
    const char *path;        /* for errors */
    uint32_t vocabulary;     /* ids are below it; at most BPE_IDS - 2 */
    const uint8_t *bytes;    /* texts of all ids as in the file ("▁", "<0x0A>"), in the order of ids, without gaps */
    const uint32_t *offsets; /* vocabulary + 1: where each text begins; an id that no text becomes has an empty text */
    /* Either merges (Hugging Face) or scores (SentencePiece) is not NULL. */
    const struct bpe_merge *merges; /* the list of merges, in order */
    uint32_t merge_count;
    bool merges_checked;  /* the loader has checked that in each merge the texts of left and right together are the text
                             of the result */
    const float *scores;  /* by id: two neighbors merge if together they are a piece; the best score merges first */
    const uint8_t *kinds; /* with scores: enum sp_kind by id; NULL: all are normal */
    uint32_t unk;         /* the unknown token, or BPE_NONE */
    bool byte_fallback;   /* a character without a token becomes the tokens of its bytes ("<0x..>"), else unk */
    bool fuse_unk;        /* several unk in a row become one */
    bool ignore_merges;   /* a text that equals a token becomes this token, whatever merging gives */
    bool escape;          /* spaces of the text become "▁" */
    bool remove_spaces;   /* spaces at both ends go, and of several in a row all but one (SentencePiece) */
    bool suffix;          /* a space is put after a text (SentencePiece); then `prefix` is SP_PREFIX_NEVER */
    bool split;           /* nothing merges across the border before a "▁" */
    enum sp_prefix prefix;
    bool front; /* another stage puts a space before texts, so decoding takes it off, as it does with a prefix */
};

#endif
