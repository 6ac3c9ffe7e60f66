/* SPDX-License-Identifier: MIT */
/* tekken_file.h - opens Mistral's tekken.json: tokens in base64 by rank, the split pattern, and the special tokens. */
#ifndef TOKMAP_VOCABULARY_TEKKEN_FILE_H
#define TOKMAP_VOCABULARY_TEKKEN_FILE_H

#include "engine/tokenizer.h"

/* Makes a tokenizer from the `count` bytes of a tekken.json; path is the name of the file in messages. The text is
 * not needed after the call. Of the options only `special` is used. Statuses: OK, ERROR_FORMAT, ERROR_UNSUPPORTED,
 * ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status tekken_file_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                    const struct tokmap_tokenizer_options *options, struct tokmap_error *error);

#endif
