/* bpe_engine.h - a byte-level BPE model as the engine of a pipeline. */
#ifndef TOKMAP_BPE_BPE_ENGINE_H
#define TOKMAP_BPE_BPE_ENGINE_H

#include "bpe_model.h"
#include "tokenizer/snapshot.h"
#include "tokenizer/text_engine.h"

/* Makes an engine that owns the model; on failure the model is freed. *engine is NULL on failure. Statuses: OK,
 * ERROR_MEMORY. */
enum tokmap_status bpe_engine_new(struct text_engine **engine, struct bpe_model *model, struct tokmap_error *error);

/* Gets an engine that such an engine has put into a snapshot, whose memory must outlive it. Its ids must be those below
 * `vocabulary`. NULL: a failure. */
struct text_engine *bpe_engine_get(struct snapshot_reader *reader, uint32_t vocabulary);

#endif
