/* sp_walk.h - finds where the ids of a text are in it. */
#ifndef TOKMAP_SENTENCEPIECE_SP_WALK_H
#define TOKMAP_SENTENCEPIECE_SP_WALK_H

#include "sp_model.h"
#include "tokenizer/text_engine.h"

/* Walks along a text, which is not empty, and the ids that sp_encode made of it. prefix: as in sp_encode. Returns false
 * if the next ids are not those of the text (text_engine.h, `walk`). */
bool sp_walk(const struct sp_model *model, const uint8_t *text, uint64_t count, bool prefix, struct id_walk *walk);

#endif
