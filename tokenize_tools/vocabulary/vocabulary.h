/*
 * vocabulary.h - opens any tokenizer: the built-in one, or a vocabulary file, whose format its content says; a folder
 * stands for the file in it.
 */
#ifndef TOKMAP_VOCABULARY_VOCABULARY_H
#define TOKMAP_VOCABULARY_VOCABULARY_H

#include "tokenizer/tokenizer.h"

/* spec: "bytes" for the built-in byte tokenizer: ids 0-255 are bytes, 256 ends a document; else the path of a
 * vocabulary, or of a folder that holds one. options: NULL for the defaults. Statuses: OK, ERROR_NOT_FOUND,
 * ERROR_FORMAT, ERROR_UNSUPPORTED, ERROR_ARGUMENT, ERROR_LIMIT, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status vocabulary_open(struct tokenizer **tokenizer, const char *spec,
                                   const struct tokenizer_options *options, struct tokmap_error *error);

#endif
