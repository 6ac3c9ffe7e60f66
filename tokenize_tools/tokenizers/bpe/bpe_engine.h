/* SPDX-License-Identifier: MIT */
/* bpe_engine.h - a byte-level BPE model as the engine of a pipeline, and what other engines have in common with it. */
#ifndef TOKMAP_BPE_BPE_ENGINE_H
#define TOKMAP_BPE_BPE_ENGINE_H

#include "bpe_encode.h"
#include "engine/text_engine.h"

/* The first member of an engine whose model begins with a bpe_model, and whose pieces it caches. */
struct pieces_engine {
    struct text_engine head;
    const struct bpe_model *model;
};
/* Functions for text_engine_kind. The first member of the state is a pointer to its bpe_state. */
bool pieces_id_bytes(const struct text_engine *engine, uint32_t id, const uint8_t **bytes, uint32_t *count);
void pieces_state_stop(struct text_engine_state *state, bool (*stop)(void *user), void *user);
/* Makes a state of `bytes` bytes, zeros after that first member. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status pieces_state_new(struct text_engine_state **state, size_t bytes, const struct bpe_model *model,
                                    struct tokmap_error *error);

/* Makes an engine that owns the model; on failure the model is freed. *engine is NULL on failure. Statuses: OK,
 * ERROR_MEMORY. */
enum tokmap_status bpe_engine_new(struct text_engine **engine, struct bpe_model *model, struct tokmap_error *error);

#endif
