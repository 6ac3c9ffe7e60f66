/*
 * sp_encode.h - text to ids with a sp_model: what each thread has of its own.
 *
 * Text is cut a chunk at a time, and the pieces go to the caches of the byte-level encoder (bpe_encode.h). What cannot
 * be read where it lies, because a space is to stand before it or a U+2581 in it, is copied first, a block at a time.
 */
#ifndef TOKMAP_SENTENCEPIECE_SP_ENCODE_H
#define TOKMAP_SENTENCEPIECE_SP_ENCODE_H

#include "bpe/bpe_encode.h"
#include "common/bytes_buffer.h"
#include "sp_merge.h"

struct sp_state {
    const struct sp_model *model;
    struct bpe_state *pieces;
    sp_cut_function *cut;
    struct bytes_buffer block, stripped;
};

/* variant: cpu_variant_best(), but for tests. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status sp_state_new(struct sp_state **state, const struct sp_model *model, enum cpu_variant variant,
                                struct tokmap_error *error);
void sp_state_free(struct sp_state *state);

/* Writes the ids of text, taken alone, to tokens: 16 bits each, or 32 if model->head.wide. prefix: a space stands
 * before it. room: in tokens, at least count + prefix. *written: how many; state->pieces->largest is the largest.
 * Statuses: OK, ERROR_MEMORY. */
enum tokmap_status sp_encode(struct sp_state *state, const uint8_t *text, uint64_t count, bool prefix, void *tokens,
                             uint64_t room, uint64_t *written, struct tokmap_error *error);

#endif
