/* SPDX-License-Identifier: MIT */
/* hf_wordpiece.h - the models WordPiece and WordLevel of a tokenizer.json. */
#ifndef TOKMAP_VOCABULARY_HF_HF_WORDPIECE_H
#define TOKMAP_VOCABULARY_HF_HF_WORDPIECE_H

#include "engine/pipeline_parts.h"
#include "hf_model.h"
#include "hf_parts.h"

/* The fields of WordPiece that other models lack. Initialize with zeros. */
struct hf_words {
    const uint8_t *prefix; /* continuing_subword_prefix; NULL: this is WordLevel */
    size_t prefix_bytes;
    uint64_t characters_most; /* max_input_chars_per_word */
};

/* The functions below return false if they refuse the file; json_file_status(file) is then the reason. */

/* Parses the value of "model" of the kind HF_WORDPIECE or HF_WORD_LEVEL. Fills the vocabulary of *model and the text of
 * its unknown token, and for WordPiece *words. */
bool hf_words_parse(struct json_file *file, enum hf_model_kind kind, struct hf_model *model, struct hf_words *words);

/* Makes the engine and the steps of the pre-tokenizer. parts: added tokens, normalizer, and the count of ids are set.
 */
bool hf_words_join(struct json_file *file, struct hf_model *model, const struct hf_words *words,
                   const struct hf_splits *splits, struct pipeline_parts *parts);

#endif
