/* SPDX-License-Identifier: MIT */
/*
 * charsmap.h - the precompiled_charsmap of SentencePiece: texts (keys) and what replaces each of them. It has, in this
 * order, the size of a trie in bytes (32 bits), the trie, which is a double array of Darts-clone, and the replacements,
 * each of which ends with a 0.
 *
 * Two programs read it, in different ways. SentencePiece replaces the longest key that begins at each place, from left
 * to right. Hugging Face tokenizers cuts the text into grapheme clusters; if one of less than 6 bytes begins with a
 * key, the whole cluster is replaced by what replaces the shortest key, otherwise each of its characters is treated so.
 */
#ifndef TOKMAP_UNICODE_CHARSMAP_H
#define TOKMAP_UNICODE_CHARSMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "code_search.h"
#include "tokmap/error.h"

struct charsmap; /* immutable; shared by threads */

/* Makes a map of a copy of the bytes. For error messages, `path` is the file that contains it (or NULL) and `field` its
 * place in the file. Every key and every replacement is looked at: the map that is returned never leads outside of
 * itself. On failure *map is NULL. Statuses: OK, ERROR_FORMAT (the map is damaged), ERROR_LIMIT (keys of more than 256
 * bytes, replacements of more than 4096, or more than two million nodes), ERROR_MEMORY. */
enum tokmap_status charsmap_new(struct charsmap **map, const uint8_t *bytes, size_t count, const char *path,
                                const char *field, struct tokmap_error *error);
/* `map` may be NULL. */
void charsmap_free(struct charsmap *map);

/* Returns the largest factor by which the map can multiply the number of bytes of a text; at least 1. */
uint64_t charsmap_growth(const struct charsmap *map);
/* Returns whether a replacement has two spaces, one after the other. */
bool charsmap_makes_spaces(const struct charsmap *map);
/* Returns the bytes that charsmap_new was given. */
const uint8_t *charsmap_bytes(const struct charsmap *map, size_t *count);

/* A part of a text and what the map makes of it, which may be the same. */
struct charsmap_part {
    size_t from, to;
    const uint8_t *made; /* points into the map */
    size_t made_count;
};
/* Finds the first key of text[at..count) that begins before `limit`, as SentencePiece does. The text is valid UTF-8,
 * `at` is 0 or the end of an earlier part, and *block begins as CODE_BLOCK_NONE at each text. Returns false if there is
 * none. */
bool charsmap_find(const struct charsmap *map, const uint8_t *text, size_t at, size_t limit, size_t count,
                   struct code_block *block, struct charsmap_part *part);

/* The place of a search in a text. Begin with CHARSMAP_CLUSTERS at each text. */
struct charsmap_clusters {
    size_t at;  /* a cluster begins here, or a character of the cluster that ends at `end` */
    size_t end; /* of a cluster whose characters are replaced one by one */
    struct code_block block;
};
#define CHARSMAP_CLUSTERS ((struct charsmap_clusters){0, 0, CODE_BLOCK_NONE})
/* Finds the next part of a text that is replaced, as Hugging Face tokenizers does. The text is valid UTF-8. Returns
 * false if no part is left. */
bool charsmap_find_cluster(const struct charsmap *map, const uint8_t *text, size_t count,
                           struct charsmap_clusters *place, struct charsmap_part *part);

/* Grapheme clusters as Hugging Face tokenizers cuts them for the normalizer Precompiled. Clusters of regional
 * indicators (flags) are not kept together, because there they make no difference (make_graphemes.py). */

/* Returns the end of the cluster of text[at..count) that begins at `at` < count. The text is valid UTF-8. */
size_t grapheme_end(const uint8_t *text, size_t at, size_t count);
/* Returns the last offset in text[from..at] where a cluster begins, as far as two characters can say so; `from`, where
 * one begins, if there is no other. A character begins at `at`. */
size_t grapheme_begin(const uint8_t *text, size_t from, size_t at);

/*
 * ---- maps of single characters ----
 *
 * Steps of normalizers that treat each character by itself, as Hugging Face tokenizers has them: each character stays,
 * becomes others, or is removed, whatever is beside it. The version of Unicode is that of each step there; see
 * code_sets.h.
 */

enum char_map {
    CHAR_MAP_LOWER, /* Lowercase: lower case; U+0130 becomes two characters, and a final sigma is not special */
    CHAR_MAP_MARKS, /* StripAccents: removes combining marks */
    CHAR_MAP_NMT,   /* Nmt: removes control characters, and replaces others by spaces */
    /* Of BertNormalizer: */
    CHAR_MAP_BERT_CLEAN,   /* clean_text: removes control characters, and makes white space spaces */
    CHAR_MAP_BERT_CHINESE, /* handle_chinese_chars: puts spaces around Chinese characters */
    CHAR_MAP_BERT_MARKS,   /* strip_accents: removes marks, after NFD */
    CHAR_MAPS
};

#define CHAR_MAP_BYTES 6 /* the most that char_map_put writes */

/* Returns the characters that the map changes or removes. */
const struct code_bits *char_map_set(enum char_map map);

/* Writes what becomes of a character of the set as UTF-8, and returns the number of bytes; 0: it is removed. */
size_t char_map_put(enum char_map map, uint8_t *into, uint32_t code);

#endif
