/* sp_engine.h - a SentencePiece-style BPE model as the engine of a pipeline. */
#ifndef TOKMAP_SENTENCEPIECE_SP_ENGINE_H
#define TOKMAP_SENTENCEPIECE_SP_ENGINE_H

#include "sp_source.h"
#include "tokenizer/text_engine.h"

/* Text that the engine gets is as it was written: spaces become "▁", and one is put before it, by the engine. Text
 * that has "▁" already is the same to it, but slower. Needs room for two ids a byte: the space before one byte, and
 * the byte. Statuses: OK, ERROR_FORMAT, ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status sp_engine_new(struct text_engine **engine, const struct sp_source *source, struct tokmap_error *error);

#endif
