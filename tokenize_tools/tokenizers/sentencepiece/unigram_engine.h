/* SPDX-License-Identifier: MIT */
/* unigram_engine.h - a Unigram model as the engine of a pipeline. */
#ifndef TOKMAP_SENTENCEPIECE_UNIGRAM_ENGINE_H
#define TOKMAP_SENTENCEPIECE_UNIGRAM_ENGINE_H

#include "engine/text_engine.h"
#include "unigram_build.h"

#define UNIGRAM_IDS_PER_BYTE 6 /* a text of one unknown space becomes the bytes of two "▁" */

/* Makes an engine. With source->texts.escape it makes spaces "▁" as the engine of sp_engine.h does. *engine is NULL on
 * failure. Statuses: OK, ERROR_FORMAT, ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status unigram_engine_new(struct text_engine **engine, const struct unigram_source *source,
                                      struct tokmap_error *error);

#endif
