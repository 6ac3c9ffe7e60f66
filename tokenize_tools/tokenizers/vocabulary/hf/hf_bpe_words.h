/* SPDX-License-Identifier: MIT */
/*
 * hf_bpe_words.h - a BPE model of a tokenizer.json that the faster engines do not serve: one that marks the ends of
 * words or the places inside them, or that loses or replaces text without a token. Its pre-tokenizer cuts the text step
 * by step, and bpe/bpe_words.h merges each word.
 */
#ifndef TOKMAP_VOCABULARY_HF_HF_BPE_WORDS_H
#define TOKMAP_VOCABULARY_HF_HF_BPE_WORDS_H

#include "engine/pipeline_parts.h"
#include "hf_model.h"
#include "hf_parts.h"

/* Returns whether a model needs this engine. mapped: the pre-tokenizer has a ByteLevel step. marks: the
 * file is plain (hf_characters.h), and replaces spaces. */
bool hf_bpe_words_wanted(const struct hf_model *model, const struct hf_splits *splits, bool mapped, bool marks);
/* Makes parts->engine from such a model, the pretokenizer, the scanner's name, and the fingerprint of `parts`, whose
 * vocabulary and added tokens are already set. Returns false if the file is refused; json_file_status(file) is then the
 * reason. */
bool hf_bpe_words_join(struct json_file *file, struct hf_model *model, const struct hf_splits *splits, bool mapped,
                       struct pipeline_parts *parts);

/* Returns a byte whose character has no token at one of the places in a word, or -1. */
int hf_byte_lacking(const struct text_table *vocabulary, struct bpe_affix prefix, struct bpe_affix suffix);

#endif
