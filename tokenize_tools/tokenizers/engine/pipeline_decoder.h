/* SPDX-License-Identifier: MIT */
/*
 * pipeline_decoder.h - turns the ids of a pipeline (pipeline.h) back into text. The functions have the contracts of
 * those with similar names in tokenizer.h.
 */
#ifndef TOKMAP_ENGINE_PIPELINE_DECODER_H
#define TOKMAP_ENGINE_PIPELINE_DECODER_H

#include "pipeline_parts.h"
#include "tokenizer_kind.h"

/* Gives the parts of a vocabulary that has no decoder one that joins the bytes of tokens, and takes off the space that
 * encoding has put before the text. Does nothing if parts->decoder_given. */
void pipeline_decoder_make(struct pipeline_parts *parts);
/* Finds the bytes that an id stands for. Returns false if no part has the id. */
bool pipeline_parts_token(const struct pipeline_parts *parts, uint32_t id, const uint8_t **bytes, uint32_t *count);

/* Makes a decoder; `tokenizer` and `parts` must outlive it. wide: ids have 4 bytes, otherwise 2. */
enum tokmap_status pipeline_decoder_new(struct tokenizer_decoder **decoder, const struct tokenizer *tokenizer,
                                        const struct pipeline_parts *parts, bool wide, bool specials,
                                        struct tokmap_error *error);
void pipeline_decoder_free(struct tokenizer_decoder *decoder);
void pipeline_decoder_begin(struct tokenizer_decoder *decoder, bool resumed);
enum tokmap_status pipeline_decoder_add(struct tokenizer_decoder *decoder, const void *tokens, uint64_t count,
                                        struct text_buffer *text, struct tokmap_error *error);
enum tokmap_status pipeline_decoder_end(struct tokenizer_decoder *decoder, struct text_buffer *text,
                                        struct tokmap_error *error);

#endif
