/* SPDX-License-Identifier: MIT */
/*
 * rank_file.h - reads rank files, tiktoken's format: each line is a token in base64, a space, and its rank, which is
 * its id.
 *
 * Such files are recognized by their content, because not all of them are called .tiktoken: the tokenizer.model of
 * Llama 3 and of Llama 4 is a rank file.
 */
#ifndef TOKMAP_VOCABULARY_RANK_FILE_H
#define TOKMAP_VOCABULARY_RANK_FILE_H

#include "bpe/bpe_build.h"
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

#endif
