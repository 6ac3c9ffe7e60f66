/*
 * stated_tokenizer.h - the tokenizer that a user states for ids that another program made (--tokenizer of `tokmap
 * index` and `tokmap convert`): what the index of their shard then records, as `tokmap pack` does.
 */
#ifndef TOKMAP_COMMANDS_OPTIONS_STATED_TOKENIZER_H
#define TOKMAP_COMMANDS_OPTIONS_STATED_TOKENIZER_H

#include "tokenizer_arguments.h"
#include "commands/report/dataset_about.h"

/* A zeroed struct states no tokenizer. */
struct stated_tokenizer {
    uint8_t fingerprint[16];
    uint64_t vocabulary; /* number of its ids; 0: no tokenizer is stated */
    char name[ABOUT_NAME];
    char *about; /* a JSON object: what an about section says of it */
};

/* Opens the tokenizer of the command line, and notes what is to be recorded; stated_tokenizer_free() frees it. Without
 * --tokenizer, none is stated. recorded: the fingerprint that the dataset has, which the tokenizer must have, too;
 * NULL, or zeros: it has none. Statuses: OK, ERROR_MISMATCH, ERROR_MEMORY, and those of vocabulary_open(). */
enum tokmap_status stated_tokenizer_open(struct stated_tokenizer *stated, const struct tokenizer_arguments *asked,
                                         const uint8_t *recorded, struct tokmap_error *error);
void stated_tokenizer_free(struct stated_tokenizer *stated);

#endif
