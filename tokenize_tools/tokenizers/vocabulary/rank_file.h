/* SPDX-License-Identifier: MIT */
/*
 * rank_file.h - opens rank files, tiktoken's format: each line is a token in base64, a space, and its rank, which is
 * its id.
 *
 * Such files are recognized by their content, because not all of them are called .tiktoken: the tokenizer.model of
 * Llama 3 and of Llama 4 is a rank file.
 */
#ifndef TOKMAP_VOCABULARY_RANK_FILE_H
#define TOKMAP_VOCABULARY_RANK_FILE_H

#include "bpe/bpe_build.h"
#include "engine/added_tokens.h"
#include "engine/tokenizer.h"
#include "rank_catalog.h"

struct rank_file {
    struct bpe_source source; /* complete except for the rules and the ids of special tokens */
    uint8_t *bytes;           /* owned; source.bytes and source.offsets point to these two */
    uint32_t *offsets;
    uint8_t fingerprint[16];                /* XXH3-128 of the file */
    const struct rank_catalog_entry *known; /* NULL if the catalog does not contain the file */
    uint32_t hole;  /* the first id below the largest that has no token; BPE_NONE: every id has one */
    uint32_t empty; /* the id of the token without bytes; or BPE_NONE */
};

/* Returns whether the first line of a text is one of a rank file. */
bool rank_file_is(const char *text, uint64_t count);
/* Reads the `count` bytes of a rank file in two steps. path, which must outlive *file, is its name in messages. Lines
 * may be in any order; empty lines are skipped. The second step looks for a text that two ranks have, and only reads
 * *file: another thread may do it. Until it has returned OK, the tokens may not all be different. Call rank_file_free
 * after success and after failure. Statuses: OK, ERROR_FORMAT (the error names the line), ERROR_LIMIT (more than 1
 * GiB), ERROR_MEMORY. */
enum tokmap_status rank_file_parse(struct rank_file *file, const char *path, const char *text, uint64_t count,
                                   struct tokmap_error *error);
enum tokmap_status rank_file_check(const struct rank_file *file, const char *text, uint64_t count,
                                   struct tokmap_error *error);
void rank_file_free(struct rank_file *file);

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
