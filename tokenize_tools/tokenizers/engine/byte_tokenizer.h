/* SPDX-License-Identifier: MIT */
/* byte_tokenizer.h - the built-in tokenizer "bytes": ids 0 to 255 are bytes of text, and 256 ends a document. */
#ifndef TOKMAP_ENGINE_BYTE_TOKENIZER_H
#define TOKMAP_ENGINE_BYTE_TOKENIZER_H

#include "tokenizer.h"

/* Opens it. On failure *tokenizer is NULL. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status byte_tokenizer_open(struct tokenizer **tokenizer, struct tokmap_error *error);

#endif
