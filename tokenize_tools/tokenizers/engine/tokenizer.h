/* SPDX-License-Identifier: MIT */
/*
 * tokenizer.h - the interface of all tokenizers: a batch of documents in, token ids out.
 *
 * A tokenizer is immutable after it is opened, and any number of threads may share it. Each thread has a state of its
 * own, with caches and working memory. All text is valid UTF-8; the corpus readers check it. Encoding adds no tokens on
 * its own: the caller asks for a prefix and a suffix (BOS and EOD) in struct tokenizer_out.
 *
 * vocabulary/vocabulary.h opens tokenizers.
 */
#ifndef TOKMAP_ENGINE_TOKENIZER_H
#define TOKMAP_ENGINE_TOKENIZER_H

#include <stdbool.h>

#include "tokmap/tokenizer.h"

struct tokenizer;
struct tokenizer_state;

struct tokenizer_info {
    const char *name;           /* for example "bytes"; valid as long as the tokenizer */
    uint64_t vocabulary;        /* all ids, also of special tokens, are less than this */
    uint32_t width;             /* bytes per id: 2 or 4 */
    uint64_t eod_id, bos_id;    /* the tokens that end and begin a document, or TOKMAP_NO_ID */
    uint8_t fingerprint[16];    /* XXH3-128 of everything that determines ids */
    uint32_t ids_per_byte_most; /* a text of n bytes becomes at most n times this many ids */
    const char *form;           /* the file format, for example "tokenizer.json"; static */
    const char *scanner;        /* splitter of text ("cl100k_base, AVX-512"); valid as long as the tokenizer */
    const char *note;           /* a sentence that users should read, such as about an ignored field; static, or NULL */
    const char *frame; /* the tokens that the file's post-processor puts around a text, for people: "<s> before and </s>
                          after"; valid as long as the tokenizer; NULL: nothing */
    bool framed_eod;   /* eod_id is the token after a text there */
    uint64_t added, specials; /* number of added tokens, and how many of them are special */
    bool cuts;                /* documents may be encoded in parts that tokenizer_cut determines */
    bool cut_anywhere;        /* every place between two characters is such a cut */
    const char *code_cuts; /* the way in which the code of the model cuts long texts (cut_tokenizer.h), static; NULL: it
                              does not, or    that is not known */
    const char *cut_as;    /* the way in which this tokenizer does; NULL: it encodes each text as a whole */
};

/* Documents to encode. They may be anywhere in memory. A document that is encoded in parts (tokenizer_cut) has at most
 * one part in a batch: as the first document with `resumed`, as the last one with `unfinished`, or both. */
struct tokenizer_batch {
    const struct tokmap_text *documents;
    uint64_t count;
    /* The first document began in an earlier batch: it gets no prefix, and no space before it that SentencePiece's BPE,
     * or a normalizer, puts before a text. */
    bool resumed;
    bool unfinished; /* the last document continues in a later batch: it gets no suffix */
};

/* Destination of ids. The caller provides memory and sets all fields that are not marked as results. The capacity must
 * be at least ids_per_byte_most ids per byte, plus one for each prefix and suffix. Prefixes and suffixes are written
 * here because adding them later would cost another copy. */
struct tokenizer_out {
    void *tokens;      /* ids of info.width bytes each, aligned to this width */
    uint64_t capacity; /* in ids */
    uint64_t count;    /* result: ids written */
    uint64_t *ends;    /* result, one per document: where its ids end, counted in ids from `tokens` */
    uint64_t largest;  /* result: the largest id written; 0 without ids */
    uint64_t failed;   /* result, if encoding fails: the number of the document in the batch */
    bool has_prefix, has_suffix;
    uint32_t prefix, suffix; /* ids to write before and after each document (BOS, EOD) */
};

/* Makes a tokenizer with the vocabulary of another one, which must outlive it, and another policy for special tokens.
 * On failure *shared is NULL. Statuses: OK, ERROR_ARGUMENT (this vocabulary has no other policy), ERROR_MEMORY. */
enum tokmap_status tokenizer_share(struct tokenizer **shared, const struct tokenizer *tokenizer,
                                   enum tokmap_special special, struct tokmap_error *error);
/* Closes a tokenizer, of which no states may be left. NULL is allowed. */
void tokenizer_close(struct tokenizer *tokenizer);
/* Sets the tokens that end and begin a document, ids or TOKMAP_NO_ID, before anybody else uses the tokenizer. */
void tokenizer_name_ends(struct tokenizer *tokenizer, uint64_t eod_id, uint64_t bos_id);
/* Describes a tokenizer. */
struct tokenizer_info info_of_tokenizer(const struct tokenizer *tokenizer);
/* Returns the id of a special token by its text ("<|endoftext|>") or by its short name ("endoftext"), or
 * TOKMAP_NO_ID. */
uint64_t tokenizer_special(const struct tokenizer *tokenizer, const char *name);

/* Describes an added token. They are numbered in the order of their ids; index < info.added. */
void tokenizer_added_at(const struct tokenizer *tokenizer, uint64_t index, struct tokmap_added_token *added);
/* Returns the id of the added token that has this text, or TOKMAP_NO_ID. */
uint64_t tokenizer_added_find(const struct tokenizer *tokenizer, const void *text, uint64_t bytes);
/* Returns the id of the token that has this text: of an added token, else of any other, or TOKMAP_NO_ID. */
uint64_t tokenizer_find(const struct tokenizer *tokenizer, const void *text, uint64_t bytes);

/* Makes the state of one thread. On failure *state is NULL. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status tokenizer_state_new(struct tokenizer_state **state, const struct tokenizer *tokenizer,
                                       struct tokmap_error *error);
/* NULL is allowed. */
void tokenizer_state_free(struct tokenizer_state *state);
/* Makes tokenizer_encode() and tokenizer_encode_marked() look at `stop` every millisecond or so, and at least once a
 * second while a pattern backtracks. If it returns true, they fail with ERROR_INTERRUPTED. stop: NULL, with which a
 * state begins: never. */
void tokenizer_state_stop(struct tokenizer_state *state, bool (*stop)(void *user), void *user);

/* Encodes a batch. `unfinished` requires info.cuts; where it is false, or a document is cut elsewhere than
 * tokenizer_cut() says, the ids are those of two texts. After a failure, the ids are incomplete. Statuses: OK,
 * ERROR_LIMIT (the capacity is too small, or a pattern needs too many steps or too much memory for a text), ERROR_INPUT
 * (a document contains the text of a special token, and the tokenizer was opened with TOKMAP_SPECIAL_ERROR),
 * ERROR_MEMORY. */
enum tokmap_status tokenizer_encode(struct tokenizer_state *state, const struct tokenizer_batch *batch,
                                    struct tokenizer_out *out, struct tokmap_error *error);

/* A range of a text that is a certain token, whatever options.special says: a chat template has written it. */
struct tokenizer_mark {
    uint64_t begin, end; /* bytes of the text */
    uint32_t id;         /* of an added token */
};
/* Place of the token of a mark. */
struct tokenizer_place {
    uint64_t index;      /* of its id in out->tokens */
    uint64_t begin, end; /* bytes of the text: the mark with the spaces that belong to the token */
};
/* Encodes one text with marks, which are in the order of the text and do not overlap. The text between them is encoded
 * as it would be between added tokens that the tokenizer has found: spaces that belong to a token (lstrip, rstrip in a
 * tokenizer.json) are taken from the text next to it, and SentencePiece puts a space where it would.
 *   out     as for a batch of one document: capacity for ids_per_byte_most ids per byte, plus prefix and suffix
 *   places  NULL, or one per mark. Between two of them, the ids are those of the text between them
 * Statuses: as tokenizer_encode, ERROR_ARGUMENT (an id is not that of an added token). */
enum tokmap_status tokenizer_encode_marked(struct tokenizer_state *state, const struct tokmap_text *text,
                                           const struct tokenizer_mark *marks, uint64_t mark_count,
                                           struct tokenizer_out *out, struct tokenizer_place *places,
                                           struct tokmap_error *error);

/* Context before a text, for tokenizer_offsets. */
enum tokenizer_where {
    TOKENIZER_STARTS = 0,     /* nothing: the text begins its document */
    TOKENIZER_RESUMES = 1,    /* text, cut as tokenizer_cut says: `resumed` in struct tokenizer_batch */
    TOKENIZER_AFTER_ADDED = 2 /* an added token, such as a mark of tokenizer_encode_marked */
};

/* Finds where the tokens of a text are: the offsets of its ids, which tokenizer_encode returned without prefix and
 * suffix for this text. Offsets are bytes of the text as it was passed in, whatever a normalizer changed.
 *   where         what is before the text
 *   ids           `count` ids of info.width bytes each
 *   begins, ends  `count` each; either may be NULL. The text of token i is text[begins[i]..ends[i]). Both ascend. A
 *                 token that holds a part of a character begins or ends inside the character. begins[i] is more than
 *                 ends[i - 1] if the tokenizer dropped the text between; a token that stands for nothing in the text,
 *                 such as a space that the tokenizer put before it, is empty; tokens that share what normalizing made
 *                 of one character overlap
 * Statuses: OK, ERROR_TOKEN (the ids are not those of this text), ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status tokenizer_offsets(struct tokenizer_state *state, const struct tokmap_text *text,
                                     enum tokenizer_where where, const void *ids, uint64_t count, uint64_t *begins,
                                     uint64_t *ends, struct tokmap_error *error);

/* Finds a place to cut a document, or the rest of one, of which `count` bytes are known: the last offset in them where
 * the two parts, encoded separately with the second one resumed, have the ids of the whole, whatever text follows.
 * Returns 0 if there is no such place. */
uint64_t tokenizer_cut(const struct tokenizer *tokenizer, const char *text, uint64_t count);

/* A buffer that grows. Initialize with zeros, or set `count` to 0 to use it again; free(bytes) in the end. */
struct text_buffer {
    char *bytes;
    uint64_t count, capacity;
};
/* Turns ids back into text, one document after another: the state of one thread. The text is that of the reference
 * implementation's decoder (text_decoder.h). It is always UTF-8, except with the byte tokenizer, whose ids are
 * bytes. */
struct tokenizer_decoder;
/* Makes a decoder for a tokenizer, which must outlive it. Special tokens become their text if `specials`, otherwise
 * nothing. On failure *decoder is NULL. Statuses: OK, ERROR_UNSUPPORTED (the vocabulary file asks for a way to decode
 * that tokmap cannot reproduce), ERROR_MEMORY. */
enum tokmap_status tokenizer_decoder_new(struct tokenizer_decoder **decoder, const struct tokenizer *tokenizer,
                                         bool specials, struct tokmap_error *error);
/* NULL is allowed. */
void tokenizer_decoder_free(struct tokenizer_decoder *decoder);
/* Begins a document, which a new decoder and tokenizer_decoder_end do, too. Set `resumed` if the ids do not begin a
 * document: a space that encoding puts before a document is otherwise removed. */
void tokenizer_decoder_begin(struct tokenizer_decoder *decoder, bool resumed);
/* Decodes the next `count` ids of the document, each of info.width bytes, and appends text that is certain now. On
 * failure *text may hold a part of the result; begin again. Statuses: OK, ERROR_TOKEN (an id is not in the vocabulary),
 * ERROR_LIMIT (a pattern of the vocabulary file needs too many steps or too much memory), ERROR_MEMORY. */
enum tokmap_status tokenizer_decoder_add(struct tokenizer_decoder *decoder, const void *tokens, uint64_t count,
                                         struct text_buffer *text, struct tokmap_error *error);
/* Ends the document, and appends the rest of its text. Statuses: as tokenizer_decoder_add. */
enum tokmap_status tokenizer_decoder_end(struct tokenizer_decoder *decoder, struct text_buffer *text,
                                         struct tokmap_error *error);
/* Returns how many U+FFFD a decoder has written since it was made for bytes that are not UTF-8. */
uint64_t tokenizer_decoder_replaced(const struct tokenizer_decoder *decoder);

/* Finds the bytes that an id stands for: of a special token its name, of any other token the bytes of text that become
 * it. Returns false if the id is not in the vocabulary. *bytes is valid as long as the tokenizer. */
bool tokenizer_token(const struct tokenizer *tokenizer, uint64_t id, const uint8_t **bytes, uint32_t *count);

#endif
