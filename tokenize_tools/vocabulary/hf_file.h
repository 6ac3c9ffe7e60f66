/*
 * hf_file.h - tokenizer.json of Hugging Face tokenizers (0.23): read, and joined to the engine that serves it.
 *
 * It is known by its parts, not by the model it belongs to. Byte-level BPE goes to bpe_model; BPE over characters, as
 * SentencePiece has it, to the engine of sp_source.h. Whatever would change ids and is not reproduced exactly is
 * refused with the name of its field.
 */
#ifndef TOKMAP_VOCABULARY_HF_FILE_H
#define TOKMAP_VOCABULARY_HF_FILE_H

#include "tokenizer/tokenizer.h"

/* True if text is a JSON object that has a model, as far as its first bytes tell. */
bool hf_file_is(const char *text, uint64_t count);

/* Statuses: OK, ERROR_FORMAT, ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status hf_file_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                const struct tokenizer_options *options, struct tokmap_error *error);

#endif
