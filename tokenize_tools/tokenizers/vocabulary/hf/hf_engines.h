/* SPDX-License-Identifier: MIT */
/*
 * hf_engines.h - the engine of each kind of model of a tokenizer.json but byte-level BPE (byte_level.h). The functions
 * that end in _parse and _join return false if they refuse the file; json_file_status(file) is then the reason.
 */
#ifndef TOKMAP_VOCABULARY_HF_HF_ENGINES_H
#define TOKMAP_VOCABULARY_HF_HF_ENGINES_H

#include "engine/pipeline_parts.h"
#include "hf_model.h"
#include "hf_parts.h"

/*
 * ---- files without a ByteLevel step whose BPE merges characters as SentencePiece's does ----
 *
 * The SentencePiece engine can do the usual work of the normalizer and the pre-tokenizer of such files itself: it
 * replaces spaces by U+2581 and puts U+2581 in front of a text. A file that asks for nothing else is *plain*.
 */

/* Returns whether the normalizer and the pre-tokenizer are plain. */
bool hf_characters_plain(const struct normalizer *normalizer, const struct hf_splits *splits);
/* Rewrites a plain normalizer so that it makes spaces instead of U+2581, which the engine reads faster; leaves it as
 * it is if an added token that is looked for in normalized text strips spaces. Call it before added tokens are
 * normalized. Returns false if memory is lacking. */
bool hf_characters_spaces(struct normalizer *normalizer, const struct added_token *added, uint32_t count);
/* Returns whether the normalizer or the pre-tokenizer puts a mark or a space in front of texts. */
bool hf_characters_front(const struct normalizer *normalizer, const struct hf_splits *splits);
/* Makes parts->engine from the model. plain: what hf_characters_plain returned. Sets the fingerprint, the scanner's
 * name and the pretokenizer of `parts`, whose vocabulary and added tokens are already set. */
bool hf_characters_join(struct json_file *file, struct hf_model *model, const struct hf_splits *splits, bool plain,
                        struct pipeline_parts *parts);

/* ---- Unigram: texts with scores ---- */

/* What such a model has besides the vocabulary. A zeroed struct is empty. */
struct hf_unigram {
    double *scores; /* by id */
    uint32_t room;
    uint64_t unk; /* "unk_id"; UINT64_MAX: null */
};
void hf_unigram_free(struct hf_unigram *unigram);

/* Parses the value of "model": the vocabulary and byte_fallback go to `model`. */
bool hf_unigram_parse(struct json_file *file, struct hf_model *model, struct hf_unigram *unigram);
/* Makes parts->engine, as hf_characters_join() does for BPE. */
bool hf_unigram_join(struct json_file *file, struct hf_model *model, const struct hf_unigram *unigram,
                     const struct hf_splits *splits, struct pipeline_parts *parts);

/* ---- WordPiece and WordLevel ---- */

/* The fields of WordPiece that other models lack. Initialize with zeros. */
struct hf_words {
    const uint8_t *prefix; /* continuing_subword_prefix; NULL: this is WordLevel */
    size_t prefix_bytes;
    uint64_t characters_most; /* max_input_chars_per_word */
};

/* Parses the value of "model" of the kind HF_WORDPIECE or HF_WORD_LEVEL. Fills the vocabulary of *model and the text of
 * its unknown token, and for WordPiece *words. */
bool hf_words_parse(struct json_file *file, enum hf_model_kind kind, struct hf_model *model, struct hf_words *words);

/* Makes the engine and the steps of the pre-tokenizer. parts: added tokens, normalizer, and the count of ids are set.
 */
bool hf_words_join(struct json_file *file, struct hf_model *model, const struct hf_words *words,
                   const struct hf_splits *splits, struct pipeline_parts *parts);

/*
 * ---- BPE that the faster engines do not serve ----
 *
 * It marks the ends of words or the places inside them, or loses or replaces text without a token. Its pre-tokenizer
 * cuts the text step by step, and bpe/bpe_words.h merges each word.
 */

/* Returns whether a model needs this engine. mapped: the pre-tokenizer has a ByteLevel step. marks: the
 * file is plain, and replaces spaces. */
bool hf_bpe_words_wanted(const struct hf_model *model, const struct hf_splits *splits, bool mapped, bool marks);
/* Makes parts->engine from such a model, the pretokenizer, the scanner's name, and the fingerprint of `parts`, whose
 * vocabulary and added tokens are already set. */
bool hf_bpe_words_join(struct json_file *file, struct hf_model *model, const struct hf_splits *splits, bool mapped,
                       struct pipeline_parts *parts);

/* Returns a byte whose character has no token at one of the places in a word, or -1. */
int hf_byte_lacking(const struct text_table *vocabulary, struct bpe_affix prefix, struct bpe_affix suffix);

#endif
