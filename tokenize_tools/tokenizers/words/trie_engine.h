/* SPDX-License-Identifier: MIT */
/*
 * trie_engine.h - longest match: at each place of the text, the longest token that begins there is taken. This is how
 * RWKV's tokenizer works. Nothing splits the text before.
 */
#ifndef TOKMAP_WORDS_TRIE_ENGINE_H
#define TOKMAP_WORDS_TRIE_ENGINE_H

#include "engine/text_engine.h"

#define TRIE_TOKEN_BYTES_MOST 1024u /* a byte of text costs at most as many steps */
#define TRIE_IDS (1u << 21)         /* ids are below it */

/* Input of trie_engine_new(), which the loader of a vocabulary file fills in. */
struct trie_source {
    const char *path;    /* for errors */
    uint32_t vocabulary; /* ids are below it; at most TRIE_IDS */
    /* The texts of all ids in the order of ids, without gaps, and where each begins (vocabulary + 1). An id that has no
     * token has an empty text. Both are from malloc(), and trie_engine_new() keeps or frees them. */
    uint8_t *bytes;
    uint32_t *offsets;
};

/* Makes an engine. *engine is NULL on failure. Statuses: OK, ERROR_FORMAT (two ids have the same text, or a byte of
 * UTF-8 has no token, so that some texts could not be encoded), ERROR_LIMIT (a token is too long), ERROR_MEMORY. */
enum tokmap_status trie_engine_new(struct text_engine **engine, const struct trie_source *source,
                                   struct tokmap_error *error);

#endif
