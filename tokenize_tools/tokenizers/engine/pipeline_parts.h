/* SPDX-License-Identifier: MIT */
/*
 * pipeline_parts.h - the parts that a pipeline (pipeline.h) is made of. The reader of each vocabulary format fills a
 * struct pipeline_parts and passes it to pipeline_new.
 */
#ifndef TOKMAP_ENGINE_PIPELINE_PARTS_H
#define TOKMAP_ENGINE_PIPELINE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "added_tokens.h"
#include "normalizer.h"
#include "pretokenize/pretokenizer.h"
#include "text_decoder.h"
#include "text_engine.h"

#define PIPELINE_NO_ID UINT32_MAX /* "no such id" in 32 bits; no vocabulary contains it */

/* The text of an id that neither the engine nor the added tokens can decode. */
struct pipeline_text {
    uint32_t id, bytes;
    const uint8_t *text;
};

/* Initialize with zeros. The parts own everything that they point to, except the static texts. */
struct pipeline_parts {
    const char *form;           /* the file format, for example "tokenizer.json"; a static text */
    const char *note;           /* see struct tokenizer_info; a static text, or NULL */
    const char *code_cuts;      /* see struct tokenizer_info; a static text, or NULL */
    char name[64];              /* the tokenizer's name in messages and in indexes */
    char scanner[96];           /* describes for people how text is split, for example "cl100k_base, AVX-512" */
    struct added_tokens *added; /* or NULL */
    struct normalizer normalizer;
    struct match_table *symbols; /* of steps of the normalizer, or NULL */
    struct match_text *symbol_texts;
    struct pretokenizer pretokenizer;
    bool engine_cuts; /* the engine splits what the pre-tokenizer leaves; otherwise these are pieces */
    bool engine_raw;  /* the engine's encode_raw does all that the normalizer and the pre-tokenizer do, which remain for
                         offsets and for added tokens in normalized text; and it makes no more ids than the text has
                         bytes, whatever these make of it */
    struct text_engine *engine;
    uint64_t ids_per_byte_most; /* the most ids that the engine makes of one byte; 0 counts as 1 */
    struct text_decoder decoder;
    bool decoder_given;          /* the vocabulary has a decoder; otherwise pipeline_new makes one that joins bytes */
    uint32_t vocabulary;         /* every id is less than this number */
    struct pipeline_text *texts; /* ascending by id */
    uint32_t text_count;
    uint8_t *text_bytes;     /* the memory of the texts in `texts` */
    uint32_t eod, bos;       /* ids, or PIPELINE_NO_ID */
    char frame[160];         /* see struct tokenizer_info; "": no tokens */
    bool framed_eod;         /* `eod` is in the frame, after a text */
    uint8_t fingerprint[16]; /* of everything that determines ids, except the policy for special tokens */
    uint8_t found[16];       /* the same of special tokens that only count where they are found in text; 0: there are
                                no others than the fingerprint has */
};

/* Frees what the parts own and sets them to zeros. */
void pipeline_parts_free(struct pipeline_parts *parts);

/* Returns the largest number of ids that one byte of a document can become: what the normalizer, the pre-tokenizer, and
 * the engine can make of it, multiplied. UINT64_MAX if the product overflows. */
uint64_t pipeline_parts_ids_per_byte(const struct pipeline_parts *parts);

/* For files that do not name the tokens that end (EOD) and begin (BOS) a document: returns the id of the special token
 * that has one of the usual names, such as "<|endoftext|>" or "<s>", or PIPELINE_NO_ID. `added` may be NULL. */
extern const char *const pipeline_eod_names[], *const pipeline_bos_names[]; /* these names, and a NULL */
uint32_t pipeline_usual_eod(const struct added_tokens *added);
uint32_t pipeline_usual_bos(const struct added_tokens *added);

#endif
