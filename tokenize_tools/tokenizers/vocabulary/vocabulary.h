/* SPDX-License-Identifier: MIT */
/*
 * vocabulary.h - opens any tokenizer: the built-in byte tokenizer, or a vocabulary file of any format that tokmap
 * reads. The format is recognized by the content of the file, not by its name.
 */
#ifndef TOKMAP_VOCABULARY_VOCABULARY_H
#define TOKMAP_VOCABULARY_VOCABULARY_H

#include "engine/tokenizer.h"

struct folder;

/* Opens a tokenizer; the caller closes it with tokenizer_close. spec is one of
 *   - "bytes", the byte tokenizer: ids 0 to 255 are bytes, 256 ends a document;
 *   - the path of a vocabulary file;
 *   - the path of a folder, which stands for one of its files (folder.h) and what the files beside it say.
 * options: NULL for the defaults. On failure *tokenizer is NULL. Statuses: OK, ERROR_NOT_FOUND, ERROR_FORMAT,
 * ERROR_UNSUPPORTED, ERROR_ARGUMENT (an option that this format does not have, or one that a rank file needs),
 * ERROR_LIMIT, ERROR_TRUNCATED, ERROR_IO, ERROR_MEMORY.
 *
 * It takes at most VOCABULARY_MEMORY (vocabulary_file.h) times the size of the file in memory, and
 * VOCABULARY_MEMORY_FREE more, because the number of ids, merges, and added tokens is limited, and because texts and
 * tables are freed as soon as the next form of the vocabulary has been built of them. Where there are several
 * processors, up to four threads share the work for a large file; the result does not depend on them. */
enum tokmap_status vocabulary_open(struct tokenizer **tokenizer, const char *spec,
                                   const struct tokmap_tokenizer_options *options, struct tokmap_error *error);

/* Does the same, and fills *folder (folder.h), which begins with zeros, with what of a folder was used; its `path`
 * stays NULL if spec is not a folder. Call folder_free after success and after failure. */
enum tokmap_status vocabulary_open_reported(struct tokenizer **tokenizer, const char *spec,
                                            const struct tokmap_tokenizer_options *options, struct folder *folder,
                                            struct tokmap_error *error);

#endif
