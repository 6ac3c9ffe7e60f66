/*
 * rank_file.h - vocabularies as tiktoken has them: a line for each token, its bytes in base64 and its rank, which is
 * its id. Told by content: Llama 3's and Llama 4's tokenizer.model are such files.
 */
#ifndef TOKMAP_VOCABULARY_RANK_FILE_H
#define TOKMAP_VOCABULARY_RANK_FILE_H

#include "bpe/bpe_build.h"
#include "rank_catalog.h"

struct rank_file {
    struct bpe_source source; /* but rules, and vocabulary without specials */
    uint8_t *bytes;
    uint32_t *offsets;
    uint8_t fingerprint[16];  /* XXH3-128 of the file */
    const struct rank_catalog_entry *known;
    uint32_t hole;            /* the first id below the largest that has no token, or BPE_NONE */
};

/* True if text begins as a rank file does. */
bool rank_file_is(const char *text, uint64_t count);
/* Statuses: OK, ERROR_FORMAT (line in the error), ERROR_LIMIT, ERROR_MEMORY. rank_file_free after either. */
enum tokmap_status rank_file_read(struct rank_file *file, const char *path, const char *text, uint64_t count,
                                  struct tokmap_error *error);
void rank_file_free(struct rank_file *file);

#endif
