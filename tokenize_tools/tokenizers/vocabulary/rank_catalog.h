/* SPDX-License-Identifier: MIT */
/*
 * rank_catalog.h - what published rank files leave out. A rank file holds only tokens and ranks; the code of its model
 * has the split pattern and the special tokens. The catalog has them for files that it knows by their fingerprint.
 */
#ifndef TOKMAP_VOCABULARY_RANK_CATALOG_H
#define TOKMAP_VOCABULARY_RANK_CATALOG_H

#include <stddef.h>
#include <stdint.h>

/* A token that a rank file leaves out. */
struct rank_catalog_token {
    const char *text;
    uint32_t bytes, id;
};

/* Tokens whose names differ in a number only. */
struct rank_catalog_series {
    const char *front, *back; /* the text before and after the number; NULL: there is no series */
    uint32_t number;          /* of the first token */
    uint32_t id, count;
};

/* Facts about a published file. */
struct rank_catalog_entry {
    const char *name;    /* of the file: "cl100k_base" */
    const char *pattern; /* the name of its split pattern (split_rules_named); NULL: `regex` */
    const char *regex;   /* the pattern, in tiktoken's syntax */
    const struct rank_catalog_token *specials;
    uint32_t special_count;
    struct rank_catalog_series series;
    const char *eod, *bos; /* texts of the special tokens that end and begin a document; NULL: none */
    const char *cut;  /* the way in which the model's own code cuts long texts (cut_tokenizer.h); NULL: it does not */
    const char *note; /* as in struct tokenizer_info, or NULL */
};

/* Writes the name of token i of a series, with a zero at its end, and returns its length. */
size_t rank_catalog_name(const struct rank_catalog_series *series, uint32_t i, char *into, size_t room);

/* Finds a rank file by its fingerprint, the XXH3-128 of all its bytes. Returns a static entry, or NULL if the catalog
 * does not contain the file. */
const struct rank_catalog_entry *rank_catalog_find(const uint8_t fingerprint[16]);

/* Finds the split pattern in the code of a model, a Python file: the one known pattern that the code has as a string,
 * or as strings one after the other, which it joins, with or without a | between them. Returns a static regular
 * expression, or NULL if the code has no pattern, has several, or if memory is lacking. No code is run. */
const char *rank_catalog_pattern_in(const char *code, size_t bytes);

#endif
