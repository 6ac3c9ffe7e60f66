/* SPDX-License-Identifier: MIT */
/* sp_engine.h - a SentencePiece-style BPE model as the engine of a pipeline. */
#ifndef TOKMAP_SENTENCEPIECE_SP_ENGINE_H
#define TOKMAP_SENTENCEPIECE_SP_ENGINE_H

#include "bpe/bpe_engine.h"
#include "sp_model.h"

/* Makes an engine. It takes text as it was written: the engine makes spaces "▁" and puts one before the text. Text that
 * has "▁" already gives the same ids, more slowly. A text needs room for two ids for each byte, since a text of one
 * byte may become the space before it and the byte. *engine is NULL on failure. Statuses: OK, ERROR_FORMAT,
 * ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status sp_engine_new(struct text_engine **engine, const struct sp_source *source,
                                 struct tokmap_error *error);

/* An engine whose model begins with a sp_model, and its states with a sp_state. */
struct sp_engine {
    struct pieces_engine base;
    struct sp_model *model;
};

/* Makes one of a kind. *engine is NULL on failure. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status sp_engine_make(struct text_engine **engine, const struct text_engine_kind *kind,
                                  struct sp_model *model, struct tokmap_error *error);
/* Returns whether a space is put before a document (text_engine_kind.puts_space). */
bool sp_engine_puts_space(const struct text_engine *engine);

/* Builds a model; free it with sp_model_free(). *model is NULL on failure. Any number of threads may build at once.
 * Statuses: OK, ERROR_FORMAT, ERROR_UNSUPPORTED (the vocabulary uses something that is not reproduced exactly),
 * ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status sp_model_build(struct sp_model **model, const struct sp_source *source, struct tokmap_error *error);

#endif
