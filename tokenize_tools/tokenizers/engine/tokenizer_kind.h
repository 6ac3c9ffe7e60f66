/* SPDX-License-Identifier: MIT */
/*
 * tokenizer_kind.h - what each kind of tokenizer (byte_tokenizer.c, pipeline.c) implements for tokenizer.c, its only
 * caller. The functions have the contracts of tokenizer.h.
 */
#ifndef TOKMAP_ENGINE_TOKENIZER_KIND_H
#define TOKMAP_ENGINE_TOKENIZER_KIND_H

#include "tokenizer.h"

struct tokenizer_kind {
    void (*close)(struct tokenizer *tokenizer);
    /* NULL: the policy for special tokens cannot be changed. */
    enum tokmap_status (*share)(struct tokenizer **shared, const struct tokenizer *tokenizer,
                                enum tokmap_special special, struct tokmap_error *error);
    enum tokmap_status (*state_new)(struct tokenizer_state **state, const struct tokenizer *tokenizer,
                                    struct tokmap_error *error);
    void (*state_free)(struct tokenizer_state *state);
    /* NULL: encoding a batch never takes long. */
    void (*state_stop)(struct tokenizer_state *state, bool (*stop)(void *user), void *user);
    enum tokmap_status (*encode)(struct tokenizer_state *state, const struct tokenizer_batch *batch,
                                 struct tokenizer_out *out, struct tokmap_error *error);
    /* NULL: the kind has no added tokens, so a text has no marks. */
    enum tokmap_status (*encode_marked)(struct tokenizer_state *state, const struct tokmap_text *text,
                                        const struct tokenizer_mark *marks, uint64_t mark_count,
                                        struct tokenizer_out *out, struct tokenizer_place *places,
                                        struct tokmap_error *error);
    enum tokmap_status (*offsets)(struct tokenizer_state *state, const struct tokmap_text *text,
                                  enum tokenizer_where where, const void *ids, uint64_t count, uint64_t *begins,
                                  uint64_t *ends, struct tokmap_error *error);
    enum tokmap_status (*decoder_new)(struct tokenizer_decoder **decoder, const struct tokenizer *tokenizer,
                                      bool specials, struct tokmap_error *error);
    void (*decoder_free)(struct tokenizer_decoder *decoder);
    void (*decoder_begin)(struct tokenizer_decoder *decoder, bool resumed); /* NULL: nothing is to be done */
    enum tokmap_status (*decoder_add)(struct tokenizer_decoder *decoder, const void *tokens, uint64_t count,
                                      struct text_buffer *text, struct tokmap_error *error);
    /* NULL: nothing is to be done. The caller calls decoder_begin afterwards. */
    enum tokmap_status (*decoder_end)(struct tokenizer_decoder *decoder, struct text_buffer *text,
                                      struct tokmap_error *error);
    bool (*token)(const struct tokenizer *tokenizer, uint64_t id, const uint8_t **bytes, uint32_t *count);
    uint64_t (*special)(const struct tokenizer *tokenizer, const char *name);
    void (*added_at)(const struct tokenizer *tokenizer, uint64_t index, struct tokmap_added_token *added);
    uint64_t (*cut)(const struct tokenizer *tokenizer, const char *text, uint64_t count); /* NULL: cannot be cut */
};

/* The first member of each kind's own struct. */
struct tokenizer {
    const struct tokenizer_kind *kind;
    struct tokenizer *inner; /* not NULL: decoders, tokens, and names are those of this one */
    struct tokenizer_info info;
};

/* The first member of each kind's own state. */
struct tokenizer_state {
    const struct tokenizer *tokenizer;
};

/* The first member of each kind's own decoder. */
struct tokenizer_decoder {
    const struct tokenizer *tokenizer;
    bool specials;
    uint64_t replaced; /* U+FFFD that stand for bytes that are not UTF-8 */
};

/* Makes room for `more` bytes after text->count. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status text_buffer_reserve(struct text_buffer *text, uint64_t more, struct tokmap_error *error);

/* For kinds: checks that `out` has room for all ids that the batch can become, with at most ids_per_byte_most ids per
 * byte. Statuses: OK, ERROR_LIMIT. */
enum tokmap_status tokenizer_check_capacity(const struct tokenizer_batch *batch, const struct tokenizer_out *out,
                                            uint64_t ids_per_byte_most, struct tokmap_error *error);

#endif
