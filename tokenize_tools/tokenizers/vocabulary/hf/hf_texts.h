/* SPDX-License-Identifier: MIT */
/* hf_texts.h - the texts of all ids of a model in a tokenizer.json, as engines take them. */
#ifndef TOKMAP_VOCABULARY_HF_HF_TEXTS_H
#define TOKMAP_VOCABULARY_HF_HF_TEXTS_H

#include "engine/pipeline_parts.h"
#include "hf_model.h"

/* Joins the texts of all ids in the order of ids, with room for 16 bytes after the last; an id without a token has an
 * empty text. The caller frees *bytes and *offsets (vocabulary + 1), on failure too. Returns false if it refuses the
 * file. */
bool hf_texts_make(struct json_file *file, const struct hf_model *model, uint32_t vocabulary, uint8_t **bytes,
                   uint32_t **offsets);

/* Leaves the texts to the decoder of the file, which needs them as the file spells them; frees them if the file has no
 * decoder or is refused. */
void hf_texts_end(struct pipeline_parts *parts, bool good, uint8_t *bytes, uint32_t *offsets);

/* Adds a token without a text to parts->texts, if the vocabulary has one: it decodes to nothing, and the engine does
 * not know it. Returns false if memory is lacking. */
bool hf_texts_empty(struct json_file *file, const struct hf_model *model, struct pipeline_parts *parts);

#endif
