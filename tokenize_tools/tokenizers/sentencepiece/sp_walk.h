/* SPDX-License-Identifier: MIT */
/*
 * sp_walk.h - what the engines over texts of SentencePiece share, whichever model chooses the tokens: where a space is
 * put before a text, and where the ids of a text are in it.
 */
#ifndef TOKMAP_SENTENCEPIECE_SP_WALK_H
#define TOKMAP_SENTENCEPIECE_SP_WALK_H

#include "engine/text_engine.h"
#include "sp_model.h"

/* Finds out whether a space is put before a text. A text of which normalizing has left nothing becomes a space, if the
 * model puts one before or after it. Returns false if nothing is to be encoded. */
bool sp_begins(const struct sp_model *model, enum engine_place place, const uint8_t **text, uint64_t *count,
               bool *prefix);

/* A walk along a text with the tokens that the model makes of it. */
struct sp_walker {
    const struct sp_model *model;
    const uint8_t *text;
    uint64_t count; /* without the spaces that are removed from the end */
    uint64_t at;
    bool prefix; /* the space before the text comes next */
    bool suffix; /* a space comes after the text */
};

/* Begins a walk. Returns false if nothing of the text is to be encoded. */
bool sp_walker_begin(struct sp_walker *walker, const struct sp_model *model, const uint8_t *text, uint64_t count,
                     enum engine_place place);
/* Moves along a token, whose bytes are those of the text as the model sees it; a token of 0 bytes is empty. Returns
 * false if the next id is another one. */
bool sp_walker_token(struct sp_walker *walker, uint32_t id, const uint8_t *bytes, uint32_t length,
                     struct id_walk *walk);

/* Walks along a text with ids that merges have made of it. Returns false if the next ids are not those of the text
 * (text_engine.h, `walk`). */
bool sp_walk(const struct sp_model *model, const uint8_t *text, uint64_t count, enum engine_place place,
             struct id_walk *walk);

#endif
