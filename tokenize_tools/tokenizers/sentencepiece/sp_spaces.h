/* SPDX-License-Identifier: MIT */
/* sp_spaces.h - the spaces of a text as SentencePiece's models see them. */
#ifndef TOKMAP_SENTENCEPIECE_SP_SPACES_H
#define TOKMAP_SENTENCEPIECE_SP_SPACES_H

#include "common/bytes_buffer.h"
#include "sp_model.h"

/* Appends text to a block, with U+2581 as spaces. Returns false if memory ran out. */
bool sp_spaces_copy(struct bytes_buffer *block, const uint8_t *text, size_t count);

/* Does what SentencePiece's remove_extra_whitespaces and treat_whitespace_as_suffix do, if the model asks for them. The
 * former does not treat U+2581 as a space, except at the end of the text, where it is removed too, with model->escape.
 * Replaces *text and *count by those of the result, which is in `into`. Returns false if memory ran out. */
bool sp_spaces_arrange(struct bytes_buffer *into, const struct sp_model *model, const uint8_t **text, uint64_t *count);

#endif
