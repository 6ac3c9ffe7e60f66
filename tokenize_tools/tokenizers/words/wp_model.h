/* SPDX-License-Identifier: MIT */
/*
 * wp_model.h - a WordPiece or WordLevel vocabulary in the form that encoding needs.
 *
 * A word becomes the longest token that it begins with, then the longest token that continues it, and so on. Tokens
 * that continue a word have a prefix in the vocabulary ("##ing"). If at some place no token fits, or the word has too
 * many characters, the whole word becomes the unknown token. WordLevel is the same without tokens that continue words.
 *
 * wp_model.c explains how a word of n bytes takes O(n) steps, whatever the vocabulary is.
 *
 * A model is immutable, and any number of threads may use it at once.
 */
#ifndef TOKMAP_WORDS_WP_MODEL_H
#define TOKMAP_WORDS_WP_MODEL_H

#include "bpe/bpe_model.h"
#include "engine/byte_trie.h"

/* A vocabulary as its file says. All memory stays the loader's, which may free it after wp_model_new(). */
struct wp_source {
    const char *path;        /* for errors */
    uint32_t vocabulary;     /* ids are below it; at most BPE_IDS - 2 */
    const uint8_t *bytes;    /* the texts of all ids as in the file ("##ing"), in the order of ids, without gaps */
    const uint32_t *offsets; /* vocabulary + 1: where each text begins; an id that no text becomes has an empty text */
    const uint8_t *prefix;   /* of tokens that continue a word, prefix_bytes; NULL: no token does (WordLevel) */
    size_t prefix_bytes;
    uint64_t characters_most; /* a word of more characters is unknown */
    uint32_t unknown;         /* id of the unknown token, or BPE_NONE */
};

/* What the bytes on the way from the node `rest` to a node can become. */
struct wp_node {
    uint32_t failure; /* the node to continue from if no byte fits here; BYTE_TRIE_NONE: the word is unknown */
    uint32_t tokens;  /* the tokens that are certain then: a wp_link, or 0 */
};

/* A list of tokens, from its last one back to its first. Lists share their beginnings. */
struct wp_link {
    uint32_t token, before; /* `before`: the link of the tokens before it, or 0 */
};

/* Limits, so that no file can use more memory than a vocabulary may. Nodes count with the gaps between them. */
#define WP_NODES_MOST (1u << 22)
#define WP_LINKS_MOST (1u << 22)

struct wp_model {
    struct bpe_model head; /* must be first: texts as in the file, seeds, and wp_merge for the caches of bpe/ */
    struct byte_trie trie; /* texts as in the file */
    struct wp_node *nodes; /* by node of the trie: all zeros where it does not follow `rest` */
    uint32_t rest;         /* the node that words continue from after a token; BYTE_TRIE_NONE: no token continues any */
    struct wp_link *links;
    uint32_t link_count;
    uint32_t prefix_bytes;
    uint64_t characters_most;
    uint32_t unknown; /* the vocabulary's size stands for an unknown token that the vocabulary lacks */
};
_Static_assert(offsetof(struct wp_model, head) == 0, "wp_merge() casts the head to the model");

/* Builds a model; free it with wp_model_free(). *model is NULL on failure. Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status wp_model_new(struct wp_model **model, const struct wp_source *source, struct tokmap_error *error);
/* Frees a model; NULL is ignored. No thread may use it any more. */
void wp_model_free(struct wp_model *model);

/* A bpe_merge_function: writes the ids of a word, which is not empty. Never fails. */
bpe_merge_function wp_merge;

/* Returns whether the word, which is not empty, becomes the unknown token because its tokens are not known. */
bool wp_is_unknown(const struct wp_model *model, const uint8_t *bytes, size_t count);

#endif
