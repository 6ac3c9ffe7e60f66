/* SPDX-License-Identifier: MIT */
/*
 * sp_encode.h - from text to ids with a sp_model: the state of one thread.
 *
 * A state belongs to one thread at a time; any number of states share a model, which must outlive them.
 */
#ifndef TOKMAP_SENTENCEPIECE_SP_ENCODE_H
#define TOKMAP_SENTENCEPIECE_SP_ENCODE_H

#include "bpe/bpe_encode.h"
#include "common/bytes_buffer.h"
#include "engine/text_engine.h"
#include "sp_merge.h"

struct sp_state {
    struct bpe_state *pieces; /* the caches */
    const struct sp_model *model;
    sp_cut_function *cut;
    struct bytes_buffer block;    /* text that had to be copied */
    struct bytes_buffer stripped; /* the text without the spaces that remove_spaces removes */
};

/* Makes a state of `bytes` bytes that begins with a sp_state, and has zeros after it. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status sp_state_begin(struct sp_state **state, size_t bytes, const struct sp_model *model,
                                  enum cpu_variant variant, struct tokmap_error *error);
/* Makes a state; free it with sp_state_free(). *state is NULL on failure. variant: cpu_variant_best(); tests pass lower
 * ones. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status sp_state_new(struct sp_state **state, const struct sp_model *model, enum cpu_variant variant,
                                struct tokmap_error *error);
/* Frees a state; NULL is ignored. */
void sp_state_free(struct sp_state *state);

/* Writes the ids of a text to `tokens`: 16 bits each, or 32 if model->head.wide. Nothing carries over from one call to
 * the next. prefix: a space is put before the text. room: in tokens, at least count + prefix. *written is the number of
 * ids, and state->pieces->largest the largest of them (or more). After ERROR_MEMORY the tokens are not meaningful, and
 * the state can be used again. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status sp_encode(struct sp_state *state, const uint8_t *text, uint64_t count, bool prefix, void *tokens,
                             uint64_t room, uint64_t *written, struct tokmap_error *error);

/* Appends text to a block, with U+2581 as spaces. Returns false if memory ran out. */
bool sp_spaces_copy(struct bytes_buffer *block, const uint8_t *text, size_t count);
/* Does what SentencePiece's remove_extra_whitespaces and treat_whitespace_as_suffix do, if the model asks for them. The
 * former does not treat U+2581 as a space, except at the end of the text, where it is removed too, with model->escape.
 * Replaces *text and *count by those of the result, which is in `into`. Returns false if memory ran out. */
bool sp_spaces_arrange(struct bytes_buffer *into, const struct sp_model *model, const uint8_t **text, uint64_t *count);

#endif
