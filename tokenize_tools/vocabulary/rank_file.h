/*
 * rank_file.h - vocabularies as tiktoken has them: a line for each token, its bytes in base64 and its rank, which is its
 * id. Told by content: Llama 3's and Llama 4's tokenizer.model are such files.
 */
#ifndef TOKMAP_VOCABULARY_RANK_FILE_H
#define TOKMAP_VOCABULARY_RANK_FILE_H

#include "bpe/bpe_model.h"
#include "tokenizer/tokenizer.h"

struct special_token {
    const char *text;
    uint32_t bytes, id;
};

/* What a file is known to be, or NULL. */
struct rank_file_known {
    const char *name;    /* "cl100k_base": the pattern's name too */
    const struct special_token *specials;
    uint32_t special_count;
    const char *eod, *bos; /* names of specials, or NULL */
};

struct rank_file {
    struct bpe_source source; /* but rules, and vocabulary without specials */
    uint8_t *bytes;
    uint32_t *offsets;
    uint8_t fingerprint[16];  /* XXH3-128 of the file */
    const struct rank_file_known *known;
    uint32_t hole;            /* the first id below the largest that has no token, or BPE_NONE */
};

/* True if text begins as a rank file does. */
bool rank_file_is(const char *text, uint64_t count);
/* Statuses: OK, ERROR_FORMAT (line in the error), ERROR_LIMIT, ERROR_MEMORY. rank_file_free after either. */
enum tokmap_status rank_file_read(struct rank_file *file, const char *path, const char *text, uint64_t count,
                                  struct tokmap_error *error);
void rank_file_free(struct rank_file *file);

/* Decodes base64 into `into` (room for 3/4 of count); returns how many bytes, 0 if it is no base64 of anything. */
uint32_t base64_decode(uint8_t *into, const uint8_t *text, uint64_t count);

/* A rank file that was read into memory, as a tokenizer (rank_tokenizer.c). Statuses: OK, ERROR_FORMAT, ERROR_LIMIT,
 * ERROR_ARGUMENT (no such pattern, or none known), ERROR_UNSUPPORTED (pattern_regex), ERROR_MEMORY; of the file of special
 * tokens ERROR_NOT_FOUND and ERROR_IO too. */
enum tokmap_status rank_tokenizer_new(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                      const struct tokenizer_options *options, struct tokmap_error *error);

#endif
