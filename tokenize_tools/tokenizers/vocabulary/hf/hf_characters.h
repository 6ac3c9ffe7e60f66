/* SPDX-License-Identifier: MIT */
/*
 * hf_characters.h - a tokenizer.json without a ByteLevel step, whose BPE merges characters as SentencePiece's does.
 *
 * The SentencePiece engine can do the usual work of the normalizer and the pre-tokenizer of such files itself: it
 * replaces spaces by U+2581 and puts U+2581 in front of a text. A file that asks for nothing else is *plain*.
 */
#ifndef TOKMAP_VOCABULARY_HF_HF_CHARACTERS_H
#define TOKMAP_VOCABULARY_HF_HF_CHARACTERS_H

#include "engine/pipeline_parts.h"
#include "hf_model.h"
#include "hf_parts.h"

/* Returns whether the normalizer and the pre-tokenizer are plain. */
bool hf_characters_plain(const struct normalizer *normalizer, const struct hf_splits *splits);
/* Rewrites a plain normalizer so that it makes spaces instead of U+2581, which the engine reads faster; leaves it as
 * it is if an added token that is looked for in normalized text strips spaces. Call it before added tokens are
 * normalized. Returns false if memory is lacking. */
bool hf_characters_spaces(struct normalizer *normalizer, const struct added_token *added, uint32_t count);
/* Returns whether the normalizer or the pre-tokenizer puts a mark or a space in front of texts. */
bool hf_characters_front(const struct normalizer *normalizer, const struct hf_splits *splits);
/* Makes parts->engine from the model. plain: what hf_characters_plain returned. Sets the fingerprint, the scanner's
 * name and the pretokenizer of `parts`, whose vocabulary and added tokens are already set. Returns false if the file
 * is refused; json_file_status(file) is then the reason. */
bool hf_characters_join(struct json_file *file, struct hf_model *model, const struct hf_splits *splits, bool plain,
                        struct pipeline_parts *parts);

#endif
