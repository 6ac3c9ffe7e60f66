/*
 * added_tokens.h - tokens that are found in the text before anything else cuts it: special ones and others.
 *
 * As Hugging Face tokenizers finds them: in the text as it is those that are not `normalized`, leftmost, of several
 * there the longest; in what is between them, once normalized, the others. A special token that is not wanted is passed
 * over like one that is: what is inside it is no other token.
 */
#ifndef TOKMAP_TOKENIZER_ADDED_TOKENS_H
#define TOKMAP_TOKENIZER_ADDED_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokmap/tokmap.h"

struct added_token {
    const uint8_t *text; /* as it stands in the file */
    uint32_t bytes, id;
    const uint8_t *match; /* what is looked for: the text, normalized if `normalized` */
    uint32_t match_bytes;
    bool single_word; /* only where no word character stands beside it */
    bool lstrip, rstrip; /* takes the spaces before and behind it */
    bool normalized;
    bool special;
};

enum added_pass { ADDED_RAW, ADDED_NORMALIZED, ADDED_PASSES };

struct added_tokens;

/* Copies what it is given. Each id stands once. Statuses: OK, ERROR_FORMAT (equal or empty texts to look for),
 * ERROR_MEMORY. */
enum tokmap_status added_tokens_new(struct added_tokens **added, const struct added_token *tokens, size_t count,
                                    const char *path, struct tokmap_error *error);
void added_tokens_free(struct added_tokens *added);
size_t added_tokens_count(const struct added_tokens *added);
/* In the order of ids. */
const struct added_token *added_tokens_at(const struct added_tokens *added, size_t index);
const struct added_token *added_tokens_by_id(const struct added_tokens *added, uint32_t id);
const struct added_token *added_tokens_by_text(const struct added_tokens *added, const char *text, size_t bytes);
/* Whether a pass can find anything; specials: special tokens count. */
bool added_tokens_any(const struct added_tokens *added, enum added_pass pass, bool specials);

/* ---- splitting ---- */

struct added_split {
    const struct added_tokens *added;
    enum added_pass pass;
    bool specials;         /* special tokens are wanted */
    const uint8_t *text;
    size_t count;
    size_t at;             /* where the search goes on */
    size_t done;           /* what is before was handed out */
    const struct added_token *waiting; /* found, but the text before it comes first */
    size_t waiting_end;
};

struct added_part {
    const struct added_token *token; /* NULL: text */
    size_t from, to;                 /* of the text */
};

void added_split_begin(struct added_split *split, const struct added_tokens *added, enum added_pass pass, bool specials,
                       const uint8_t *text, size_t count);
/* The next part, text (never empty) or a token; false at the end. */
bool added_split_next(struct added_split *split, struct added_part *part);

#endif
