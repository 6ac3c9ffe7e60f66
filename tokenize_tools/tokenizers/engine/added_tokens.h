/* SPDX-License-Identifier: MIT */
/*
 * added_tokens.h - finds added tokens, special ones and others, in the text before anything else processes it.
 *
 * The rules are those of Hugging Face tokenizers. There are two passes. The first one searches the text as it is for
 * tokens that are not `normalized`; the second one searches the normalized text between the tokens found for the
 * others. Each pass takes the leftmost token, and of several that begin there the longest. A special token that is not
 * wanted is skipped as a whole: no other token is found inside of it.
 */
#ifndef TOKMAP_ENGINE_ADDED_TOKENS_H
#define TOKMAP_ENGINE_ADDED_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "match_table.h"

struct added_token {
    const uint8_t *text; /* as in the file */
    uint32_t bytes, id;
    const uint8_t *match; /* the text to search for: `text`, normalized if the token is `normalized` */
    uint32_t match_bytes;
    bool single_word;    /* only where no word character is directly before or after it */
    bool lstrip, rstrip; /* includes the spaces before it, after it */
    bool normalized;     /* searched for in the normalized text */
    bool special;
    const uint8_t *decoded; /* result of decoding; NULL for added_tokens_new: `text` */
    uint32_t decoded_bytes;
    bool hidden; /* decoding gives nothing where special tokens are left out; with `decoded` NULL: as `special` */
};

enum added_pass { ADDED_RAW, ADDED_NORMALIZED, ADDED_PASSES };

struct added_tokens; /* immutable; shared by threads */
struct finder;       /* the tokens of one pass; see added_tokens.c */

/* Makes a set of `count` tokens, which are copied together with their texts. No two tokens may have one id. `path` is
 * for messages and may be NULL. On failure *added is NULL. Statuses: OK, ERROR_FORMAT (the match of a token is empty or
 * equals that of another one in the same pass), ERROR_LIMIT (tokens of more than MATCH_WALK bytes have more than
 * MATCH_LONG_MOST in total), ERROR_MEMORY. */
enum tokmap_status added_tokens_new(struct added_tokens **added, const struct added_token *tokens, size_t count,
                                    const char *path, struct tokmap_error *error);
/* In this function and the following ones `added` may be NULL, which is an empty set. */
void added_tokens_free(struct added_tokens *added);
size_t added_tokens_count(const struct added_tokens *added);
/* Returns a token by its position in the order of ids, index < added_tokens_count(). */
const struct added_token *added_tokens_at(const struct added_tokens *added, size_t index);
/* Return a token by its id or its text (not its match), or NULL. */
const struct added_token *added_tokens_by_id(const struct added_tokens *added, uint32_t id);
const struct added_token *added_tokens_by_text(const struct added_tokens *added, const char *text, size_t bytes);
/* Returns whether a pass can find any token; special tokens count only if `specials`. */
bool added_tokens_any(const struct added_tokens *added, enum added_pass pass, bool specials);

/* ---- splitting a text at added tokens ---- */

struct added_split {
    const struct finder *finder; /* the tokens of the pass */
    bool specials;               /* special tokens are wanted */
    const uint8_t *text;
    size_t count;
    size_t at;                         /* place where the search continues */
    size_t done;                       /* everything before it has been returned */
    const struct added_token *waiting; /* a token that was found, but the text before it is returned first; or NULL */
    size_t waiting_end;
    size_t spaces_from, spaces_to; /* the last run of spaces that a token took; spaces_to 0: none */
    struct match_search search;    /* search.steps: the work so far */
};

struct added_part {
    const struct added_token *token; /* NULL: text */
    size_t from, to;                 /* of the text */
};

/* Starts to split a text, `count` bytes of valid UTF-8 that must stay until the last part. `added` is not NULL. The
 * work of all calls together is linear in `count`, whatever the tokens are. */
void added_split_begin(struct added_split *split, const struct added_tokens *added, enum added_pass pass, bool specials,
                       const uint8_t *text, size_t count);
/* Returns the next part, a token or a text that is not empty. Parts are in order and cover the text. Returns false at
 * the end, and if memory is lacking. */
bool added_split_next(struct added_split *split, struct added_part *part);
/* To be called once after each added_split_begin(), also before the end of the text. Statuses: OK, ERROR_MEMORY (parts
 * are missing). */
enum tokmap_status added_split_end(struct added_split *split, struct tokmap_error *error);

#endif
