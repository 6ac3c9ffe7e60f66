/*
 * pipeline.h - a tokenizer from its parts: added tokens are taken out, the rest is normalized, cut and given to an engine.
 * Every loader of a vocabulary file ends here.
 */
#ifndef TOKMAP_TOKENIZER_PIPELINE_H
#define TOKMAP_TOKENIZER_PIPELINE_H

#include "added_tokens.h"
#include "pretokenize/pretokenizer.h"
#include "normalizer.h"
#include "text_engine.h"
#include "tokenizer.h"

#define PIPELINE_NO_ID UINT32_MAX

/* What an id is decoded to when neither the engine nor an added token says it. */
struct pipeline_text {
    uint32_t id, bytes;
    const uint8_t *text;
};

/* Zeroed at first. What is pointed to becomes the tokenizer's own, on failure too, but for the constant texts. */
struct pipeline_parts {
    const char *form;       /* "tokenizer.json"; static */
    char name[64];          /* what it is called in messages and indexes */
    char scanner[96];       /* what cuts text, for people */
    struct added_tokens *added; /* NULL: none */
    struct normalizer normalizer;
    struct pretokenizer pretokenizer;
    bool engine_cuts;       /* what the pretokenizer leaves is text for the engine to cut further, else a piece */
    struct text_engine *engine;
    uint64_t ids_per_byte_most; /* ids that a byte of normalized text becomes, at most */
    uint32_t vocabulary;    /* ids are below it */
    struct pipeline_text *texts; /* in the order of ids */
    uint32_t text_count;
    uint8_t *text_bytes;    /* that texts point into */
    uint32_t eod, bos;      /* or PIPELINE_NO_ID */
    uint8_t fingerprint[16]; /* of vocabulary, merges, pattern, normalizer, added tokens; the policy is put to it */
};
void pipeline_parts_free(struct pipeline_parts *parts);

/* Statuses: OK, ERROR_LIMIT (one byte may become too many tokens), ERROR_MEMORY. */
enum tokmap_status pipeline_new(struct tokenizer **tokenizer, struct pipeline_parts *parts,
                                enum tokenizer_special special, const char *path, struct tokmap_error *error);

/* ---- where a document may be cut (pipeline_cut.c) ---- */

#define CUT_RIGHTS 5
struct pipeline_cuts {
    bool rights[CUT_RIGHTS]; /* which characters may begin the second part */
    bool composes;           /* texts are brought to NFC */
    const struct text_engine *engine;
};
/* False: nowhere. specials: special tokens are looked for. */
bool pipeline_cuts_find(struct pipeline_cuts *cuts, const struct pipeline_parts *parts, bool specials);
size_t pipeline_cut(const struct pipeline_cuts *cuts, const uint8_t *text, size_t count);

/* The id of the special token that ends a document, and that begins one, where the file does not say: by the names that
 * are in use. PIPELINE_NO_ID if none of them is there. */
uint32_t pipeline_usual_eod(const struct added_tokens *added);
uint32_t pipeline_usual_bos(const struct added_tokens *added);

#endif
