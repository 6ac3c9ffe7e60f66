/*
 * sp_model.h - a SentencePiece-style BPE vocabulary (Llama-2, Mistral-7B, Gemma), ready to encode.
 *
 * Nothing cuts such a text into words before it is merged: a document is one word. But a token can only cross a border
 * of two characters if some token holds them side by side, and few pairs of characters are; so text is cut where none
 * does (sp_cut.h), and the pieces are looked up, or merged, as those of byte-level vocabularies are.
 *
 * Inside, "▁" (U+2581) is the byte 0x20, if the vocabulary writes spaces so: then text need not be rewritten.
 */
#ifndef TOKMAP_SENTENCEPIECE_SP_MODEL_H
#define TOKMAP_SENTENCEPIECE_SP_MODEL_H

#include "bpe/bpe_model.h"
#include "sp_cut.h"

/* Where a "▁" is put before a text. */
enum sp_prefix {
    SP_PREFIX_NEVER,
    SP_PREFIX_ALWAYS, /* a normalizer's: at the start of what is between raw added tokens */
    SP_PREFIX_UNLESS, /* Metaspace's: at the start of every stretch of text that does not begin with one */
    SP_PREFIX_FIRST   /* the same, only at the start of the document */
};

/* The kinds that a .model file gives its pieces; numbers as there. */
enum sp_kind {
    SP_NORMAL = 1,
    SP_UNKNOWN = 2,
    SP_CONTROL = 3,
    SP_USER_DEFINED = 4, /* found before anything merges, the longest first, and never merged */
    SP_UNUSED = 5,
    SP_BYTE = 6
};

/* What a loader knows; all of it stays the loader's. */
struct sp_source {
    const char *path;        /* for errors */
    uint32_t vocabulary;     /* ids are below it; at most BPE_IDS */
    const uint8_t *bytes;    /* texts of all ids as the file has them ("▁", "<0x0A>"), in the order of ids */
    const uint32_t *offsets; /* vocabulary + 1; an id that no text becomes is empty */
    const struct bpe_merge *merges; /* Hugging Face: in their order ... */
    uint32_t merge_count;
    bool fits;               /* the loader has seen that the texts of a merge's parts together are that of its result */
    const float *scores;     /* ... or SentencePiece: two neighbours merge if together they are a piece, the best score
                                first; merges is NULL then */
    const uint8_t *kinds;    /* with scores: enum sp_kind; NULL: all are normal */
    uint32_t unk;            /* or BPE_NONE */
    bool byte_fallback;      /* a character without a token becomes its bytes' tokens "<0x..>", else unk */
    bool fuse_unk;           /* unk after unk is one */
    bool ignore_merges;      /* a text that is a token is that token */
    bool escape;             /* spaces become "▁" */
    bool remove_spaces;      /* at both ends, and but one where there are several (SentencePiece) */
    bool split;              /* nothing merges over the border before a "▁" */
    enum sp_prefix prefix;
    bool front;              /* somebody else puts a space before texts: decoding takes it off, as it does with a prefix */
};

struct sp_model {
    struct bpe_model head;   /* what the caches need, pairs, decoded texts; byte_ids are those of "<0x..>" */
    uint32_t *atoms;         /* by code point: symbol + 1; 0: no token holds the character */
    uint32_t symbols;        /* tokens, and characters that only stand inside of them; what pairs are of */
    uint32_t *ids;           /* by symbols; BPE_NONE: such a character */
    uint32_t *priorities;    /* of merges, by their rank; NULL: the rank. Equals merge from the left */
    uint32_t tied;           /* priorities grow with ranks up to this rank, from where on all are equal; BPE_MERGES: there
                                are no priorities; BPE_NONE: there are equals before others */
    uint32_t unk;
    bool byte_fallback, fuse_unk, escape, remove_spaces, front;
    enum sp_prefix prefix;
    struct sp_cutter pretokenizer;

    /* User defined pieces, sorted by their bytes: where each is, ids. firsts: bits, the bytes that any begins with. */
    uint8_t *defined_bytes;
    uint32_t *defined_offsets, *defined_ids;
    uint32_t defined_count;
    uint64_t defined_firsts[4];

    /* Tokens that a text which equals one is, though merges give something else: sorted by their text; ids. */
    uint32_t *wholes;
    uint32_t whole_count, whole_longest;
    bool whole_bytes; /* such are the texts of tokens of bytes too, "<0x0A>" */
};

/* Statuses: OK, ERROR_FORMAT, ERROR_UNSUPPORTED (what is not reproduced exactly), ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status sp_model_build(struct sp_model **model, const struct sp_source *source, struct tokmap_error *error);
void sp_model_free(struct sp_model *model);

/* The id that a text is as a whole though merges do not give it; BPE_NONE if there is none. */
uint32_t sp_whole(const struct sp_model *model, const uint8_t *bytes, size_t count);

/* ---- merging (sp_merge.c) ---- */

#define SP_NO_SYMBOL (BPE_IDS - 2) /* a character that no token holds; two of BPE_IDS - 1 would be like an empty slot */

/* As bpe_merge; `model` is the head of a struct sp_model. */
bpe_merge_function sp_merge;

/* The first two symbols that merges leave of `count` bytes, and where the second one begins. Returns how many are left;
 * 0: no memory. */
size_t sp_merge_symbols(const struct sp_model *model, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                        uint32_t symbols[2], uint32_t *border);

/* Where ids go, in the width that they have in the end. */
struct sp_ids {
    void *tokens;
    size_t count;
    uint32_t largest;
    bool wide;
};

static inline void sp_ids_put(struct sp_ids *ids, uint32_t id)
{
    if (ids->wide)
        ((uint32_t *)ids->tokens)[ids->count++] = id;
    else
        ((uint16_t *)ids->tokens)[ids->count++] = (uint16_t)id;
    ids->largest = id > ids->largest ? id : ids->largest;
}

/* Ids of a symbol that stands for `count` bytes. */
static inline void sp_ids_put_symbol(const struct sp_model *model, struct sp_ids *ids, uint32_t symbol,
                                     const uint8_t *bytes, size_t count)
{
    const uint32_t id = symbol < model->symbols ? model->ids[symbol] : BPE_NONE;
    if (id != BPE_NONE) {
        sp_ids_put(ids, id);
    } else if (!model->byte_fallback) {
        sp_ids_put(ids, model->unk);
    } else {
        for (size_t i = 0; i < count; i++)
            sp_ids_put(ids, model->head.byte_ids[bytes[i]]);
    }
}

/* The same for pieces of any length, straight to where they belong, with room for `count`: the scratch does not grow with
 * the piece, but with odd vocabularies. False: no memory. */
bool sp_merge_long(const struct sp_model *model, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                   struct sp_ids *ids);

/* Reads the character at bytes (count > 0), which is UTF-8: its code; *length. What is not UTF-8 gives some code. */
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
#define SP_CODES 0x200000u /* what sp_character gives is below it */

#define SP_MARK "\xE2\x96\x81" /* ▁ */

#endif
