/* SPDX-License-Identifier: MIT */
/*
 * sp_file.h - opens SentencePiece's .model files as tokenizers.
 *
 * Such a file is a protocol buffer (ModelProto): pieces with scores, and the settings of the trainer and the
 * normalizer. tokmap reads BPE models. A setting that changes ids in a way that it does not reproduce exactly is
 * refused by the field's name.
 */
#ifndef TOKMAP_VOCABULARY_SP_FILE_H
#define TOKMAP_VOCABULARY_SP_FILE_H

#include "engine/tokenizer.h"

struct piece_rule;

/* Returns whether a file begins like a model: with a piece. */
bool sp_file_is(const uint8_t *bytes, uint64_t count);

/* Makes a tokenizer from the `count` bytes of a model; path is the name of the file in messages. The bytes are not
 * needed after the call. rule: of the ids (piece_rules.h); NULL: they are those of the model. The control pieces of the
 * model become special tokens. Statuses: OK, ERROR_FORMAT (with the offset of the damage), ERROR_UNSUPPORTED,
 * ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status sp_file_open(struct tokenizer **tokenizer, const char *path, const uint8_t *bytes, uint64_t count,
                                const struct piece_rule *rule, const struct tokmap_tokenizer_options *options,
                                struct tokmap_error *error);

#endif
