/* sp_tokenizer.h - opens a SentencePiece model as a tokenizer. */
#ifndef TOKMAP_VOCABULARY_SP_TOKENIZER_H
#define TOKMAP_VOCABULARY_SP_TOKENIZER_H

#include "tokenizer/tokenizer.h"

/* Makes a tokenizer from the `count` bytes of a SentencePiece model; path is the name of the file in messages. The
 * bytes are not needed after the call. The control pieces of the model become special tokens. Statuses: OK,
 * ERROR_FORMAT, ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status sp_tokenizer_new(struct tokenizer **tokenizer, const char *path, const uint8_t *bytes,
                                    uint64_t count, const struct tokmap_tokenizer_options *options,
                                    struct tokmap_error *error);

#endif
