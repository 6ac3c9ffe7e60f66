/* SPDX-License-Identifier: MIT */
/* rank_tokenizer.h - opens a rank file as a tokenizer. */
#ifndef TOKMAP_VOCABULARY_RANK_TOKENIZER_H
#define TOKMAP_VOCABULARY_RANK_TOKENIZER_H

#include "engine/added_tokens.h"
#include "engine/tokenizer.h"

/* What the other files of a model's folder say about its rank file. */
struct rank_beside {
    const struct added_token *specials; /* special tokens, with ids that the file does not have */
    uint32_t count;
    const char *regex; /* the split pattern of the model's code, or NULL */
    bool regex_used;   /* result: it is the pattern of the tokenizer */
};

/* Makes a tokenizer from the `count` bytes of a rank file; path is the name of the file in messages. The text is not
 * needed after the call. The split pattern is options->pattern or options->pattern_regex, or that of the catalog's
 * entry for the file, or that of `beside`, which may be NULL; the special tokens come from the file
 * options->special_tokens, or from `beside` and the catalog. Statuses: OK, ERROR_FORMAT, ERROR_LIMIT, ERROR_ARGUMENT
 * (the pattern is unknown, or none is given for a file that is not in the catalog), ERROR_UNSUPPORTED
 * (options->pattern_regex cannot be used), ERROR_MEMORY; for the file of special tokens also ERROR_NOT_FOUND,
 * ERROR_TRUNCATED and ERROR_IO. */
enum tokmap_status rank_tokenizer_new(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                      const struct tokmap_tokenizer_options *options, struct rank_beside *beside,
                                      struct tokmap_error *error);

#endif
