/* SPDX-License-Identifier: MIT */
/*
 * sp_walk.h - what the engines over texts of SentencePiece share, whichever model chooses the tokens: where a space is
 * put before a text, and where the ids of a text are in it.
 */
#ifndef TOKMAP_SENTENCEPIECE_SP_WALK_H
#define TOKMAP_SENTENCEPIECE_SP_WALK_H

#include "sp_model.h"
#include "tokenizer/text_engine.h"

/* Finds out whether a space is put before a text. A text of which normalizing has left nothing becomes a space, if the
 * model puts one before or after it. Returns false if nothing is to be encoded. */
bool sp_begins(const struct sp_model *model, enum engine_place place, const uint8_t **text, uint64_t *count,
               bool *prefix);

/* Walks along a text and the ids that were made of it. Returns false if the next ids are not those of the text
 * (text_engine.h, `walk`). Of the model it reads the texts of ids, the characters that have tokens, and the settings.
 */
bool sp_walk(const struct sp_model *model, const uint8_t *text, uint64_t count, enum engine_place place,
             struct id_walk *walk);

#endif
