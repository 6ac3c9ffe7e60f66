/* SPDX-License-Identifier: MIT */
/*
 * bpe_files.h - GPT-2's format: a tokenizer in two files, stored in the same folder.
 *
 *     vocab.bpe or merges.txt       the merges, one per line: two tokens with a space between them
 *     encoder.json or vocab.json    a JSON object with the id of each token
 *
 * Other tokenizers come in such files, too. What is not of GPT-2's kind is refused.
 */
#ifndef TOKMAP_VOCABULARY_BPE_FILES_H
#define TOKMAP_VOCABULARY_BPE_FILES_H

#include "engine/tokenizer.h"

/* Returns whether a text begins like a file of merges: with "#version". */
bool bpe_files_is(const char *text, uint64_t count);

/* Makes a tokenizer from the two files. The caller has read one of them: `text` holds its `count` bytes, which are
 * not needed after the call, and path is its name. The function finds the other file in the folder of path and reads
 * it. *error changes only if the call fails, and may be NULL. Statuses: OK, ERROR_NOT_FOUND (the other file is
 * missing), ERROR_FORMAT, ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_TRUNCATED, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status bpe_files_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                  const struct tokmap_tokenizer_options *options, struct tokmap_error *error);

/* Returns whether a text, which is not compressed, begins like the file of OpenAI's CLIP, bpe_simple_vocab_16e6.txt.gz:
 * a list of merges, of which CLIP takes the first 48,894. The vocabulary follows from them: the characters of all
 * bytes, the same as ends of words, what each merge makes, and two special tokens. */
bool clip_file_is(const char *text, uint64_t count);
/* Makes a tokenizer from the text of a file, which is not needed after the call. *error changes only if the call fails,
 * and may be NULL. Statuses: OK, ERROR_FORMAT, ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status clip_file_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                  const struct tokmap_tokenizer_options *options, struct tokmap_error *error);

#endif
