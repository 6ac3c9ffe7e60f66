/* tekken_file.h - tekken.json of Mistral: ranks with their bytes, the pattern, and special tokens, whose ids come
 * first. */
#ifndef TOKMAP_VOCABULARY_TEKKEN_FILE_H
#define TOKMAP_VOCABULARY_TEKKEN_FILE_H

#include "tokenizer/tokenizer.h"

/* Statuses: OK, ERROR_FORMAT, ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status tekken_file_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                    const struct tokenizer_options *options, struct tokmap_error *error);

#endif
