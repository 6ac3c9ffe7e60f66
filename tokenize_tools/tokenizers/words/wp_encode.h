/* SPDX-License-Identifier: MIT */
/*
 * wp_encode.h - from a text as it was written to ids, with a wp_model and the table of a BertNormalizer and a
 * BertPreTokenizer: the state of one thread.
 *
 * A state belongs to one thread at a time; any number of states share a model and a table, which must outlive them.
 */
#ifndef TOKMAP_WORDS_WP_ENCODE_H
#define TOKMAP_WORDS_WP_ENCODE_H

#include "bpe/bpe_encode.h"
#include "common/bytes_buffer.h"
#include "engine/text_engine.h"
#include "wp_characters.h"
#include "wp_model.h"

/* Words made of a stretch of ASCII text. */
struct wp_words {
    uint8_t *into;   /* receives their bytes, one word after the other; 64 bytes may be written */
    uint32_t made;   /* number of these bytes */
    uint64_t starts; /* bit i: a word begins at into[i] */
    bool open;       /* before the call, true if into[-1] is part of a word that may continue; then, of the last word */
};

/* Makes words of the ASCII text that is at the beginning of text[0..count), at most 64 bytes. Returns how many bytes
 * have been read; 0: there is no ASCII text. */
typedef size_t wp_ascii_function(const struct wp_characters *characters, const uint8_t *text, size_t count,
                                 struct wp_words *words);
wp_ascii_function wp_ascii_scalar;
#if defined(__x86_64__)
wp_ascii_function wp_ascii_vbmi;
#endif

struct wp_state {
    struct bpe_state *pieces; /* the caches */
    const struct wp_model *model;
    const struct wp_characters *characters; /* NULL: only words are encoded */
    wp_ascii_function *ascii;
    struct ids_out *out; /* of the text in work */
    uint32_t made;       /* bytes of `block` */
    bool open;           /* true if the last word of `block` may continue */
    bool unsorted;       /* true if marks have to change places */
    uint32_t mark_end;   /* 1 + the end in `block` of the last mark, or 0; and its combining class */
    uint8_t mark_class;
    struct bytes_buffer word; /* the beginning of a word that is longer than a block */
    uint8_t block[SCAN_BYTES + 128];
    uint32_t spill[SCAN_BYTES]; /* receives ids where the caller's room may be too small */
};

/* Makes a state; free it with wp_state_free(). *state is NULL on failure. variant: cpu_variant_best(); tests pass lower
 * ones. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status wp_state_new(struct wp_state **state, const struct wp_model *model,
                                const struct wp_characters *characters, enum cpu_variant variant,
                                struct tokmap_error *error);
/* Frees a state; NULL is ignored. */
void wp_state_free(struct wp_state *state);

/* Appends the ids of a word that is not empty. Statuses: OK, ERROR_INPUT (the word is unknown, and the vocabulary has
 * no unknown token), ERROR_MEMORY. */
enum tokmap_status wp_encode_word(struct wp_state *state, const uint8_t *word, uint64_t count, struct ids_out *out,
                                  struct tokmap_error *error);

/* Appends the ids of a text that is not normalized or split. *done is false, and nothing is appended, if marks have
 * to change places, which only the normalizer itself does. Statuses: as wp_encode_word, and ERROR_INTERRUPTED. */
enum tokmap_status wp_encode_text(struct wp_state *state, const uint8_t *text, uint64_t count, struct ids_out *out,
                                  bool *done, struct tokmap_error *error);

/* Makes an engine. It takes pieces, each of which is a word, and makes at most one id of a character. rules: of the
 * BertNormalizer that the text has, which a BertPreTokenizer follows, for encode_raw; NULL: the text has other ones,
 * and encode_raw must not be called. *engine is NULL on failure. Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status wp_engine_new(struct text_engine **engine, const struct wp_source *source,
                                 const struct wp_rules *rules, struct tokmap_error *error);

#endif
