/* SPDX-License-Identifier: MIT */
/*
 * char_map.h - steps of normalizers that treat each character by itself, as Hugging Face tokenizers has them: each
 * character stays, becomes others, or is removed, whatever is beside it. make_unicode.py generates the tables by asking
 * that library, so the version of Unicode is that of each step there.
 */
#ifndef TOKMAP_UNICODE_CHAR_MAP_H
#define TOKMAP_UNICODE_CHAR_MAP_H

#include "char_map_tables.h"

#define CHAR_MAP_BYTES 4  /* the most that char_map_put writes */
#define CHAR_MAP_GROWTH 2 /* no character becomes more than this times its bytes */

/* Writes what becomes of a character of the set as UTF-8, and returns the number of bytes; 0: it is removed. */
size_t char_map_put(enum char_map map, uint8_t *into, uint32_t code);

#endif
