/*
 * hf_file.h - tokenizer.json of Hugging Face tokenizers (0.23): read, and joined to the engine that serves it.
 *
 * It is known by its parts, not by the model it belongs to. Byte-level BPE goes to bpe_model; BPE over characters, as
 * SentencePiece has it, to the engine of sp_source.h. Whatever would change ids and is not reproduced exactly is refused
 * with the name of its field.
 */
#ifndef TOKMAP_VOCABULARY_HF_FILE_H
#define TOKMAP_VOCABULARY_HF_FILE_H

#include "hf_model.h"
#include "hf_parts.h"
#include "tokenizer/pipeline.h"

/* True if text is a JSON object that has a model, as far as its first bytes tell. */
bool hf_file_is(const char *text, uint64_t count);

/* Statuses: OK, ERROR_FORMAT, ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status hf_file_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                const struct tokenizer_options *options, struct tokmap_error *error);

/* ---- shared with the other forms of the same vocabularies ---- */

/* Steps to a pretokenizer and the rules that the engine goes on with. False: refused. splits: with a ByteLevel step. */
bool hf_pretokenizer_build(struct json_file *file, const struct hf_splits *splits, struct pipeline_parts *parts,
                     struct split_rules *rules);
/* The same without a ByteLevel step: each step to the pretokenizer. */
bool hf_pretokenizer_steps(struct json_file *file, const struct hf_splits *splits, struct pipeline_parts *parts);
/* "cl100k_base, AVX2": what the engine's scanner goes by, and how. Returns the length. */
size_t scanner_describe(char *into, size_t room, const char *rules);
/* For a model without ByteLevel: whether the engine does by itself what normalizer and pre-tokenizer do. */
bool hf_characters_plain(const struct normalizer *normalizer, const struct hf_splits *splits);
/* To be called before added tokens are normalized, if so. False: no memory. */
bool hf_characters_spaces(struct normalizer *normalizer, const struct added_token *added, uint32_t count);
/* Joins a model without ByteLevel to the engine of sp_engine.h, or refuses it. */
bool hf_characters_join(struct json_file *file, const struct hf_model *model, const struct hf_splits *splits, bool plain,
                        struct pipeline_parts *parts);
/* Puts normalizer, pretokenizer, rules and added tokens to the fingerprint of the model. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status hf_fingerprint(struct pipeline_parts *parts, const struct hf_splits *splits,
                                  const struct split_rules *rules, struct tokmap_error *error);

#endif
