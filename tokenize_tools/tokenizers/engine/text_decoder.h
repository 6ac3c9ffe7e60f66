/* SPDX-License-Identifier: MIT */
/*
 * text_decoder.h - turns the texts of tokens into the text of a document, by the steps that a vocabulary's own decoder
 * has. The steps are those that a tokenizer.json can name, plus the two that other vocabularies need.
 *
 * The result is that of the reference: of Hugging Face tokenizers for a tokenizer.json, of tiktoken for rank files, and
 * of SentencePiece for its models. Tokens are passed in one by one, and text comes out as early as the steps allow, so
 * a document may be longer than memory.
 */
#ifndef TOKMAP_ENGINE_TEXT_DECODER_H
#define TOKMAP_ENGINE_TEXT_DECODER_H

#include <stdbool.h>
#include <stdint.h>

#include "pretokenize/regex_match.h"
#include "tokenizer.h"

#define DECODER_STEPS_MOST 16
#define DECODER_GROWTH_MOST 4096 /* the most bytes of text that one byte of a token may become */

enum decode_kind {
    DECODE_LOSSY,         /* joins bytes; what is not UTF-8 becomes U+FFFD, one for each maximal subpart (utf8.h) */
    DECODE_SENTENCEPIECE, /* SentencePiece's whole decoder; it needs the kinds of tokens */
    DECODE_BYTE_LEVEL,    /* characters that stand for bytes become these bytes, which are joined as by LOSSY */
    DECODE_BYTE_FALLBACK, /* tokens named <0x0A> become bytes; a run of them that is not UTF-8 becomes U+FFFDs */
    DECODE_FUSE,          /* all tokens become one, so the steps after it see the whole text as one token */
    DECODE_REPLACE,       /* of each token: replaces a text or the matches of a pattern */
    DECODE_STRIP,         /* of each token: takes a character off its two ends */
    DECODE_METASPACE,     /* a mark becomes a space, or nothing in the first token */
    DECODE_WORDPIECE,     /* a space before each token but the first one, unless the token has a prefix */
    DECODE_CTC,           /* repeated tokens count once */
    DECODE_BPE            /* a suffix becomes a space, or nothing in the last token */
};

/* A step. A kind that lacks a field ignores it. The step owns its texts and its pattern. */
struct decode_step {
    enum decode_kind kind;
    uint8_t *pattern;     /* REPLACE: the text to replace; WORDPIECE: the prefix; CTC: the token to remove; BPE: the
                             suffix */
    size_t pattern_bytes; /* not 0 for REPLACE without `regex` */
    struct regex *regex;  /* REPLACE: the pattern to replace, or NULL */
    uint8_t *content;     /* REPLACE: what replaces it; CTC: the text that becomes a space */
    size_t content_bytes;
    uint32_t character;   /* STRIP: the character to take off; METASPACE: the mark */
    uint64_t start, stop; /* STRIP: how many of them at most, from the front and from the end */
    bool prepends;        /* METASPACE: the tokenizer puts a mark before a text */
    bool cleanup;         /* WORDPIECE, CTC: takes out spaces before punctuation */
    bool trims_front;     /* SENTENCEPIECE: a space before the text is taken off */
    bool trims_spaces;    /* SENTENCEPIECE: all such spaces are taken off */
};

/* The kinds of tokens that SentencePiece's decoder tells apart. */
enum decode_token { DECODE_TEXT, DECODE_BYTE, DECODE_CONTROL };

/* Initialize with zeros: the texts of tokens are joined as bytes. The decoder owns its memory. Immutable while
 * decodings use it. */
struct text_decoder {
    struct decode_step steps[DECODER_STEPS_MOST];
    uint32_t count;
    bool mapped;        /* the file's first step is ByteLevel, and the engine has applied it to its own tokens; it
                           remains to be applied to the texts of added tokens */
    bool spelled_bytes; /* the engine's tokens are bytes, but the first step wants the characters that stand for them */
    uint8_t *texts;     /* the tokens as the file spells them, in the order of ids; NULL: the engine's texts are used */
    uint32_t *offsets;  /* vocabulary + 1: where each text begins */
    uint8_t *kinds;     /* by id: enum decode_token; NULL: all are DECODE_TEXT */
    uint32_t vocabulary;
    char refused[240]; /* reason why the file's decoder cannot be reproduced; "": it can */
};

/* Frees what the decoder owns and sets it to zeros. */
void text_decoder_free(struct text_decoder *decoder);
/* Returns the most bytes of text that a byte of a token can become; UINT64_MAX if it is 2^32 or more. */
uint64_t text_decoder_growth(const struct text_decoder *decoder);

/* Appends the bytes that the characters of a text stand for (byte_alphabet.h) and returns true; or returns false and
 * appends nothing, if one of the characters does not stand for a byte. `into` has room for `count` bytes. */
bool text_decoder_map(const uint8_t *text, size_t count, uint8_t *into, size_t *made);

struct text_decoding; /* one document after another; of one thread */

/* Begins to decode with a decoder, which must outlive it. *replaced grows with each U+FFFD that stands for bytes that
 * are not UTF-8. On failure *decoding is NULL. Statuses: OK, ERROR_UNSUPPORTED (the file's decoder cannot be
 * reproduced), ERROR_MEMORY. */
enum tokmap_status text_decoding_new(struct text_decoding **decoding, const struct text_decoder *decoder,
                                     uint64_t *replaced, struct tokmap_error *error);
/* NULL is allowed. */
void text_decoding_free(struct text_decoding *decoding);
/* Begins a document. resumed: it continues an earlier one, so its first token is not treated as a first one. */
void text_decoding_begin(struct text_decoding *decoding, bool resumed);
/* Decodes a token, and appends text that is certain now. Statuses: OK, ERROR_LIMIT (a pattern needs too many steps or
 * too much memory), ERROR_MEMORY. */
enum tokmap_status text_decoding_token(struct text_decoding *decoding, const uint8_t *text, size_t count,
                                       enum decode_token kind, struct text_buffer *into, struct tokmap_error *error);
/* Ends the document, and appends the rest of its text. Statuses: as before. */
enum tokmap_status text_decoding_end(struct text_decoding *decoding, struct text_buffer *into,
                                     struct tokmap_error *error);

#endif
