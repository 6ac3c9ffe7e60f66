/* SPDX-License-Identifier: MIT */
/*
 * char_map.h - steps of normalizers that treat each character by itself, as Hugging Face tokenizers has them: each
 * character stays, becomes others, or is removed, whatever is beside it. The version of Unicode is that of each step
 * there; see code_sets.h.
 */
#ifndef TOKMAP_UNICODE_CHAR_MAP_H
#define TOKMAP_UNICODE_CHAR_MAP_H

#include "code_search.h"

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
