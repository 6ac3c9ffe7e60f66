/*
 * tokenizer.h - the one interface of every tokenizer: a batch of documents in, ids out.
 *
 * A tokenizer is immutable once open and shared by threads; each thread has a state of its own (caches, scratch). Text
 * is valid UTF-8: the corpus readers see to it. encode never adds tokens of its own (EOD, BOS): the packer does.
 */
#ifndef TOKMAP_TOKENIZER_TOKENIZER_H
#define TOKMAP_TOKENIZER_TOKENIZER_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

struct tokenizer;
struct tokenizer_state;

/* What becomes of text that reads like a special token. */
enum tokenizer_special {
    TOKENIZER_SPECIAL_TEXT,      /* it is text like any other; added tokens that are not special are found all the same */
    TOKENIZER_SPECIAL_RECOGNIZE, /* it is that token */
    TOKENIZER_SPECIAL_ERROR      /* encode fails: ERROR_INPUT */
};

/* Zeroed: the defaults. */
struct tokenizer_options {
    enum tokenizer_special special;
    const char *pattern;        /* name of the split pattern of a rank file that is not known; NULL: none given */
    const char *pattern_regex;  /* the pattern itself */
    const char *special_tokens; /* path of a JSON object, text to id: the special tokens of a rank file */
};

struct tokenizer_info {
    const char *name;               /* "bytes"; lives as long as the tokenizer */
    uint64_t vocabulary;            /* ids are below it, specials included */
    uint32_t width;                 /* 2 or 4: bytes a token needs */
    uint64_t eod_id, bos_id;        /* that it names, or TOKMAP_NO_ID */
    uint8_t fingerprint[16];        /* XXH3-128 of all that decides ids */
    uint32_t ids_per_byte_most; /* ids that `bytes` bytes of text can become: at most bytes * this */
    const char *form;        /* what its file is: "tokenizer.json"; static */
    const char *note;        /* a sentence that users should read about their file, such as a field that is ignored; NULL: none;
                                static */
    const char *scanner;     /* what cuts text into pieces: "cl100k_base, AVX-512"; lives as long as the tokenizer */
    uint64_t added, specials; /* added tokens, and how many of them are special */
    bool cuts;               /* a document may come in parts, cut where tokenizer_cut() says, with the same ids */
    bool cut_anywhere;       /* that is between any two characters */
};

struct tokenizer_text {
    const char *bytes;
    uint64_t count;
};

/* Documents, each where its reader left it. Of a document that comes in parts (cuts) a batch holds one part: */
struct tokenizer_batch {
    const struct tokenizer_text *documents;
    uint64_t count;
    bool resumed;    /* the first document began in an earlier batch: no prefix */
    bool unfinished; /* the last one goes on in a later batch: no suffix */
};

/* Where ids go, in the tokenizer's width. The caller provides room for bound * bytes + room_each * documents tokens.
 * After document i, `suffix` is appended if has_suffix (the EOD), before it `prefix` if has_prefix (the BOS): here,
 * since a second pass over the ids would cost a copy. */
struct tokenizer_out {
    void *tokens;
    uint64_t capacity; /* in tokens */
    uint64_t count;    /* out */
    uint64_t *ends;    /* out: where each document (or its part) ends, in tokens from the start of `tokens` */
    uint64_t largest;  /* out: largest id written, 0 if none */
    uint64_t failed;   /* out, where encode fails: at which document of the batch */
    bool has_prefix, has_suffix;
    uint32_t prefix, suffix;
};

void tokenizer_close(struct tokenizer *tokenizer);
void tokenizer_info(const struct tokenizer *tokenizer, struct tokenizer_info *info);
/* The id of a special token by its name ("<|endoftext|>" or its short name), TOKMAP_NO_ID if there is none. */
uint64_t tokenizer_special(const struct tokenizer *tokenizer, const char *name);
/* The added tokens, special or not, in the order of ids: index below info.added. */
struct tokenizer_added {
    const char *text; /* no zero ends it; lives as long as the tokenizer */
    uint64_t bytes, id;
    bool special;
};
void tokenizer_added_at(const struct tokenizer *tokenizer, uint64_t index, struct tokenizer_added *added);

enum tokmap_status tokenizer_state_new(struct tokenizer_state **state, const struct tokenizer *tokenizer,
                                       struct tokmap_error *error);
void tokenizer_state_free(struct tokenizer_state *state);

/* Statuses: OK, ERROR_LIMIT (capacity, or a pattern that needs too much for a text), ERROR_INPUT (text of a special
 * token, where that is an error), ERROR_MEMORY. */
enum tokmap_status tokenizer_encode(struct tokenizer_state *state, const struct tokenizer_batch *batch,
                                    struct tokenizer_out *out, struct tokmap_error *error);

/* Where to cut a document, or the rest of one, of which these bytes are known: the last place among them where both
 * parts alone, the second resumed, have the ids that they have together, whatever follows. 0: none is known. */
uint64_t tokenizer_cut(const struct tokenizer *tokenizer, const char *text, uint64_t count);

/* For measuring: cuts a text into pieces and leaves it at that; *measures is what the state has counted since it was
 * made. False: such a tokenizer cuts nothing, or counts nothing. */
struct tokenizer_measures {
    uint64_t pieces; /* that were looked up */
    uint64_t missed; /* of them, not found at the first look */
    uint64_t merged; /* of them, merged because no cache had them */
};
bool tokenizer_measure(struct tokenizer_state *state, const char *text, uint64_t count,
                       struct tokenizer_measures *measures);

/* Appends the text of ids (of the tokenizer's width) to *text through a growing buffer: the exact inverse of encode for
 * valid UTF-8. Special tokens become their name's text if `specials`, else nothing. The ids are a document's, or if
 * `resumed` some that do not begin it: what encoding put before its text is then not taken off.
 * Statuses: OK, ERROR_TOKEN, ERROR_MEMORY. */
struct text_buffer {
    char *bytes;
    uint64_t count, capacity;
};
enum tokmap_status tokenizer_decode(const struct tokenizer *tokenizer, const void *tokens, uint64_t count,
                                    bool specials, bool resumed, struct text_buffer *text,
                                    struct tokmap_error *error);

#endif
