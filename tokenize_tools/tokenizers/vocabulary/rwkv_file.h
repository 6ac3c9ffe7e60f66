/* SPDX-License-Identifier: MIT */
/*
 * rwkv_file.h - the vocabulary of RWKV (rwkv_vocab_v20230424.txt). Each line has an id, the text of a token as a string
 * or as bytes in the syntax of Python, and the number of its bytes:
 *
 *     257 '\t\t' 2
 *     129 b'\x80' 1
 *
 * The longest token at each place of a text is taken.
 */
#ifndef TOKMAP_VOCABULARY_RWKV_FILE_H
#define TOKMAP_VOCABULARY_RWKV_FILE_H

#include "engine/tokenizer.h"

/* Returns whether a text begins like such a file: with a number, a space, and a quote, or b and a quote. */
bool rwkv_file_is(const char *text, uint64_t count);

/* Makes a tokenizer from the text of a file, which is not needed after the call. *error changes only if the call fails,
 * and may be NULL. Statuses: OK, ERROR_FORMAT, ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status rwkv_file_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                  const struct tokmap_tokenizer_options *options, struct tokmap_error *error);

#endif
