/* SPDX-License-Identifier: MIT */
/* bpe_engine.h - a byte-level BPE model as the engine of a pipeline. */
#ifndef TOKMAP_BPE_BPE_ENGINE_H
#define TOKMAP_BPE_BPE_ENGINE_H

#include "bpe_model.h"
#include "engine/text_engine.h"

/* Makes an engine that owns the model; on failure the model is freed. *engine is NULL on failure. Statuses: OK,
 * ERROR_MEMORY. */
enum tokmap_status bpe_engine_new(struct text_engine **engine, struct bpe_model *model, struct tokmap_error *error);

#endif
