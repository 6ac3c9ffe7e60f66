/*
 * vocabulary.h - the files of tokenizers: read whole, told apart by content; a folder stands for the file in it.
 */
#ifndef TOKMAP_VOCABULARY_VOCABULARY_H
#define TOKMAP_VOCABULARY_VOCABULARY_H

#include "tokenizer/tokenizer.h"

#define TOKENIZER_FILE_MOST ((uint64_t)1 << 30)

/* The whole file in memory, to be freed: a file that is replaced meanwhile is no signal then. Statuses: OK,
 * ERROR_NOT_FOUND, ERROR_UNSUPPORTED (empty, no file, or over TOKENIZER_FILE_MOST), ERROR_TRUNCATED, ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status tokenizer_file_read(const char *path, char **text, uint64_t *bytes, struct tokmap_error *error);

/* Opens whatever vocabulary the file or folder is. Statuses: as tokenizer_open(). */
enum tokmap_status tokenizer_file_open(struct tokenizer **tokenizer, const char *path,
                                       const struct tokenizer_options *options, struct tokmap_error *error);

#endif
