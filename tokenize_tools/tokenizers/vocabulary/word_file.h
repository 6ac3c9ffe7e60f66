/* SPDX-License-Identifier: MIT */
/*
 * word_file.h - opens a vocab.txt of BERT and its relatives: a WordPiece vocabulary, one token a line.
 *
 * The file has only the tokens. A tokenizer_config.json beside it, if there is one, says how text is normalized
 * (do_lower_case, strip_accents, tokenize_chinese_chars), and names the special tokens. The tokenizer is that of the
 * tokenizer.json that transformers makes of these files, with the same ids and the same fingerprint.
 */
#ifndef TOKMAP_VOCABULARY_WORD_FILE_H
#define TOKMAP_VOCABULARY_WORD_FILE_H

#include <stdbool.h>

#include "engine/tokenizer.h"

/* Returns whether a file is a vocab.txt: its name ends with that, or one of its lines is [UNK]. */
bool word_file_is(const char *path, const char *text, uint64_t count);

/* Makes a tokenizer from the `count` bytes of a file; path is its name. The text is not needed after the call. Of the
 * options `special` and `lower_case` are used. Statuses: OK, ERROR_FORMAT, ERROR_UNSUPPORTED, ERROR_ARGUMENT (whether
 * text is made lower case is not given, or is given twice), ERROR_LIMIT, ERROR_MEMORY, ERROR_IO. */
enum tokmap_status word_file_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                  const struct tokmap_tokenizer_options *options, struct tokmap_error *error);

#endif
