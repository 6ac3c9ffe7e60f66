/*
 * rank_catalog.h - the rank files that are recognized by their content.
 *
 * A rank file holds only tokens and ranks. For the rank files that OpenAI and Meta publish, this catalog supplies what
 * the file leaves out: the split pattern, the special tokens, and which of them begin and end a document.
 */
#ifndef TOKMAP_VOCABULARY_RANK_CATALOG_H
#define TOKMAP_VOCABULARY_RANK_CATALOG_H

#include <stdint.h>

struct rank_catalog_token {
    const char *text;
    uint32_t bytes, id;
};

struct rank_catalog_entry {
    const char *name; /* of the file and of its split pattern: "cl100k_base" */
    const struct rank_catalog_token *specials;
    uint32_t special_count;
    const char *eod, *bos; /* texts of the special tokens that end and begin a document; NULL: none */
};

/* Finds a rank file by its fingerprint, the XXH3-128 of all its bytes. Returns a static entry, or NULL if the
 * catalog does not contain the file. */
const struct rank_catalog_entry *rank_catalog_find(const uint8_t fingerprint[16]);

#endif
