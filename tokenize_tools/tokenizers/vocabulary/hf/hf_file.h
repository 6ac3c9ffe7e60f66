/* SPDX-License-Identifier: MIT */
/*
 * hf_file.h - opens a tokenizer.json of Hugging Face tokenizers (0.23) as a tokenizer.
 *
 * The file describes the tokenizer by its parts: normalizer, pre-tokenizer, model, post-processor and added tokens.
 * Which language model it belongs to does not matter. A byte-level model is encoded by bpe_model; a model whose BPE
 * merges characters, as SentencePiece's does, by the engine of sp_engine.h; WordPiece and WordLevel by that of
 * wp_encode.h. A field that would change ids in a way that
 * tokmap does not reproduce exactly is refused by its name.
 */
#ifndef TOKMAP_VOCABULARY_HF_HF_FILE_H
#define TOKMAP_VOCABULARY_HF_HF_FILE_H

#include "engine/tokenizer.h"

/* Returns whether a text begins like a JSON object. */
bool hf_file_is(const char *text, uint64_t count);

/* The text of a tokenizer.json, which may have been made of another file. */
struct hf_text {
    const char *path; /* in messages */
    const char *text;
    uint64_t count;
    const char *form; /* of the tokenizer: see struct tokenizer_info; a static text */
    uint32_t refused; /* bit k: a model of the kind k (hf_model.h) is ERROR_UNSUPPORTED */
};
/* As hf_file_open. */
enum tokmap_status hf_text_open(struct tokenizer **tokenizer, const struct hf_text *text,
                                const struct tokmap_tokenizer_options *options, struct tokmap_error *error);

/* Makes a tokenizer from the `count` bytes of a tokenizer.json; path is the name of the file in messages. The text
 * is not needed after the call. Of the options only `special` is used. Statuses: OK, ERROR_FORMAT,
 * ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status hf_file_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                const struct tokmap_tokenizer_options *options, struct tokmap_error *error);

#endif
