/* SPDX-License-Identifier: MIT */
/*
 * clip_file.h - the file of OpenAI's CLIP, bpe_simple_vocab_16e6.txt.gz: a list of merges, of which CLIP takes the
 * first 48,894. The vocabulary follows from them: the characters of all bytes, the same as ends of words, what each
 * merge makes, and two special tokens.
 */
#ifndef TOKMAP_VOCABULARY_CLIP_FILE_H
#define TOKMAP_VOCABULARY_CLIP_FILE_H

#include "engine/tokenizer.h"

/* Returns whether a text, which is not compressed, begins like this file. */
bool clip_file_is(const char *text, uint64_t count);

/* Makes a tokenizer from the text of a file, which is not needed after the call. *error changes only if the call fails,
 * and may be NULL. Statuses: OK, ERROR_FORMAT, ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status clip_file_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                  const struct tokmap_tokenizer_options *options, struct tokmap_error *error);

#endif
