/* SPDX-License-Identifier: MIT */
/*
 * char_map.h - steps of normalizers that treat each character by itself, as Hugging Face tokenizers has them: each
 * character stays, becomes others, or is removed, whatever is beside it. make_unicode.py generates the tables by asking
 * that library, so the version of Unicode is that of each step there.
 */
#ifndef TOKMAP_UNICODE_CHAR_MAP_H
#define TOKMAP_UNICODE_CHAR_MAP_H

#include "code_search.h"

enum char_map {
    CHAR_MAP_LOWER, /* Lowercase: lower case; U+0130 becomes two characters, and a final sigma is not special */
    CHAR_MAP_MARKS, /* StripAccents: removes combining marks */
    CHAR_MAP_NMT,   /* Nmt: removes control characters, and replaces others by spaces */
    CHAR_MAPS
};

#define CHAR_MAP_BYTES 4  /* the most that char_map_put writes */
#define CHAR_MAP_GROWTH 2 /* no character becomes more than this times its bytes */

/* The characters that each map changes or removes. */
extern const struct code_bits char_map_sets[CHAR_MAPS];

/* Writes what becomes of a character of the set as UTF-8, and returns the number of bytes; 0: it is removed. */
size_t char_map_put(enum char_map map, uint8_t *into, uint32_t code);

#endif
