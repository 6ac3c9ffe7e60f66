/* SPDX-License-Identifier: MIT */
/* grapheme_tables.h - the tables that charsmap.c uses. make_graphemes.py generates grapheme_tables.c and prints the
 * size below. */
#ifndef TOKMAP_UNICODE_GRAPHEME_TABLES_H
#define TOKMAP_UNICODE_GRAPHEME_TABLES_H

#include <stdint.h>

#define GRAPHEME_BLOCKS 234

/* Classes of characters, in the order of make_graphemes.py; the names are those of Unicode's property
 * Grapheme_Cluster_Break, where it has one. */
enum grapheme_class {
    GRAPHEME_OTHER,
    GRAPHEME_CONTROL,
    GRAPHEME_CR,
    GRAPHEME_LF,
    GRAPHEME_EXTEND, /* these do not end a conjunct */
    GRAPHEME_LINKER, /* Extend: joins the consonants of a conjunct */
    GRAPHEME_EXTEND_ONLY,
    GRAPHEME_ZWJ,
    GRAPHEME_SPACING,
    GRAPHEME_PREPEND,
    GRAPHEME_PICTOGRAPH,
    GRAPHEME_CONSONANT, /* of a conjunct */
    GRAPHEME_L,
    GRAPHEME_V,
    GRAPHEME_T,
    GRAPHEME_LV,
    GRAPHEME_LVT
};

/* The class of character c is grapheme_blocks[grapheme_first[c / 64]][c % 64]. */
extern const uint16_t grapheme_first[0x110000 / 64];
extern const uint8_t grapheme_blocks[GRAPHEME_BLOCKS][64];

#endif
