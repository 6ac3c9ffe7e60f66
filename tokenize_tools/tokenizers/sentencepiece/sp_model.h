/* SPDX-License-Identifier: MIT */
/*
 * sp_model.h - a SentencePiece-style BPE vocabulary (Llama-2, Mistral-7B, Gemma) in the form that encoding needs.
 *
 * No pre-tokenizer cuts the text for these vocabularies: a whole document is one word to merge. But a merge can only
 * cross the border of two characters if some token holds these two side by side, and few pairs of characters are held
 * so. Text is therefore cut at all other borders (sp_cut.h), and the pieces go through the same caches as those of
 * byte-level vocabularies (bpe/bpe_encode.h).
 *
 * Inside the model "▁" (U+2581) is the byte 0x20, if the vocabulary writes spaces as "▁". So text is read unchanged.
 *
 * A model is immutable, and any number of threads may use it at once.
 */
#ifndef TOKMAP_SENTENCEPIECE_SP_MODEL_H
#define TOKMAP_SENTENCEPIECE_SP_MODEL_H

#include "bpe/bpe_model.h"
#include "sp_cut.h"

/* ---- what the loader of a vocabulary fills in, for sp_engine.h ---- */

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

/* ---- the model ---- */

/* A symbol is what merging works on: a token, or a character that has no token but is part of one. */
/* A character that no token holds. (BPE_IDS - 1 twice looks like an empty slot.) */
#define SP_NO_SYMBOL (BPE_IDS - 2)

struct sp_model {
    struct bpe_model head; /* must be first. Texts are those that ids decode to; byte_ids are the tokens "<0x..>"; pairs
                              are of symbols. */
    uint32_t *atoms;       /* by code point: symbol + 1, or 0 if no token holds the character; SP_CODES of them */
    uint32_t symbols;      /* symbols are below it */
    uint32_t *ids;         /* by symbol; BPE_NONE: the symbol has no token */
    uint32_t *priorities;  /* by rank; merges of equal priority go from left to right. NULL: the rank itself */
    uint32_t tied;         /* priorities grow with ranks up to this rank, and from it on all are equal. BPE_MERGES:
                              there are no priorities. BPE_NONE: equal ones come before others, so this does not
                              hold. */
    uint32_t unk;          /* the unknown token, or BPE_NONE */
    bool byte_fallback, fuse_unk, escape, remove_spaces, suffix, front; /* see struct sp_source */
    enum sp_prefix prefix;
    struct sp_cut_table cuts;

    /* User-defined pieces, sorted by their bytes: texts, offsets (one more than pieces), ids. defined_firsts has a
     * bit for each byte that one of them begins with. */
    uint8_t *defined_bytes;
    uint32_t *defined_offsets, *defined_ids;
    uint32_t defined_count;
    uint64_t defined_firsts[4];

    /* Tokens that a text which equals them becomes, although merging gives something else: ids, sorted by text. */
    uint32_t *wholes;
    uint32_t whole_count, whole_longest; /* whole_longest: bytes of the longest such text, or 0 */
    bool whole_bytes;                    /* the names of the tokens of bytes ("<0x0A>") count too */
};
_Static_assert(offsetof(struct sp_model, head) == 0, "sp_merge() casts the head to the model");

/* Frees a model and all that it holds; NULL is ignored. No thread may use it any more. */
void sp_model_free(struct sp_model *model);

/* Returns the id that a text is as a whole although merging does not give it, or BPE_NONE. */
uint32_t sp_whole(const struct sp_model *model, const uint8_t *bytes, size_t count);

/* ---- characters ---- */

#define SP_CODES 0x200000u     /* results of sp_character are below it */
#define SP_MARK "\xE2\x96\x81" /* "▁" */

/* Returns the code point of the character that begins at `bytes` and writes its length to *length. count: at least
 * 1. Bytes that are not UTF-8 give some code point below SP_CODES. */
static inline uint32_t sp_character(const uint8_t *bytes, size_t count, uint32_t *length)
{
    const uint32_t first = bytes[0];
    if (first < 0x80 || count < 2) {
        *length = 1;
        return first;
    }
    if (first < 0xE0 || count < 3) {
        *length = 2;
        return (first & 31) << 6 | (bytes[1] & 63u);
    }
    if (first < 0xF0 || count < 4) {
        *length = 3;
        return (first & 15) << 12 | (bytes[1] & 63u) << 6 | (bytes[2] & 63u);
    }
    *length = 4;
    return (first & 7) << 18 | (bytes[1] & 63u) << 12 | (bytes[2] & 63u) << 6 | (bytes[3] & 63u);
}

#endif
