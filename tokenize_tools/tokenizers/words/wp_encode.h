/* SPDX-License-Identifier: MIT */
/*
 * wp_encode.h - a WordPiece or WordLevel vocabulary in the form that encoding needs, and from a text as it was written
 * to ids, with this model and the table of a BertNormalizer and a BertPreTokenizer.
 *
 * A word becomes the longest token that it begins with, then the longest token that continues it, and so on. Tokens
 * that continue a word have a prefix in the vocabulary ("##ing"). If at some place no token fits, or the word has too
 * many characters, the whole word becomes the unknown token. WordLevel is the same without tokens that continue words.
 *
 * A model is immutable, and any number of threads may use it at once. A state belongs to one thread at a time; any
 * number of states share a model and a table, which must outlive them.
 */
#ifndef TOKMAP_WORDS_WP_ENCODE_H
#define TOKMAP_WORDS_WP_ENCODE_H

#include "bpe/bpe_encode.h"
#include "common/bytes_buffer.h"
#include "engine/byte_trie.h"
#include "engine/text_engine.h"
#include "wp_characters.h"

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

/* Words made of a stretch of ASCII text. */
struct wp_words {
    uint8_t *into;   /* receives their bytes, one word after the other; 64 bytes may be written */
    uint32_t made;   /* number of these bytes */
    uint64_t starts; /* bit i: a word begins at into[i] */
    bool open;       /* before the call, true if into[-1] is part of a word that may continue; then, of the last word */
};

/* Makes words of the ASCII text that is at the beginning of text[0..count), at most 64 bytes. Returns how many bytes
 * have been read; 0: there is no ASCII text. */
typedef size_t wp_ascii_function(const struct wp_characters *characters, const uint8_t *text, size_t count,
                                 struct wp_words *words);
wp_ascii_function wp_ascii_scalar;
#if defined(__x86_64__)
wp_ascii_function wp_ascii_vbmi;
#endif

struct wp_state {
    struct bpe_state *pieces; /* the caches */
    const struct wp_model *model;
    const struct wp_characters *characters; /* NULL: only words are encoded */
    wp_ascii_function *ascii;
    struct ids_out *out; /* of the text in work */
    uint32_t made;       /* bytes of `block` */
    bool open;           /* true if the last word of `block` may continue */
    bool unsorted;       /* true if marks have to change places */
    uint32_t mark_end;   /* 1 + the end in `block` of the last mark, or 0; and its combining class */
    uint8_t mark_class;
    struct bytes_buffer word; /* the beginning of a word that is longer than a block */
    uint8_t block[SCAN_BYTES + 128];
    uint32_t spill[SCAN_BYTES]; /* receives ids where the caller's room may be too small */
};

/* Makes a state; free it with wp_state_free(). *state is NULL on failure. variant: cpu_variant_best(); tests pass lower
 * ones. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status wp_state_new(struct wp_state **state, const struct wp_model *model,
                                const struct wp_characters *characters, enum cpu_variant variant,
                                struct tokmap_error *error);
/* Frees a state; NULL is ignored. */
void wp_state_free(struct wp_state *state);

/* Appends the ids of a word that is not empty. Statuses: OK, ERROR_INPUT (the word is unknown, and the vocabulary has
 * no unknown token), ERROR_MEMORY. */
enum tokmap_status wp_encode_word(struct wp_state *state, const uint8_t *word, uint64_t count, struct ids_out *out,
                                  struct tokmap_error *error);

/* Appends the ids of a text that is not normalized or split. *done is false, and nothing is appended, if marks have
 * to change places, which only the normalizer itself does. Statuses: as wp_encode_word, and ERROR_INTERRUPTED. */
enum tokmap_status wp_encode_text(struct wp_state *state, const uint8_t *text, uint64_t count, struct ids_out *out,
                                  bool *done, struct tokmap_error *error);

/* Makes an engine. It takes pieces, each of which is a word, and makes at most one id of a character. rules: of the
 * BertNormalizer that the text has, which a BertPreTokenizer follows, for encode_raw; NULL: the text has other ones,
 * and encode_raw must not be called. *engine is NULL on failure. Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status wp_engine_new(struct text_engine **engine, const struct wp_source *source,
                                 const struct wp_rules *rules, struct tokmap_error *error);

#endif
