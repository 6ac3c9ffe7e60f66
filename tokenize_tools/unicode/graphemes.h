/* SPDX-License-Identifier: MIT */
/*
 * graphemes.h - grapheme clusters as Hugging Face tokenizers cuts them for the normalizer Precompiled. Clusters of
 * regional indicators (flags) are not kept together, because there they make no difference (make_graphemes.py).
 */
#ifndef TOKMAP_UNICODE_GRAPHEMES_H
#define TOKMAP_UNICODE_GRAPHEMES_H

#include <stddef.h>
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

/* Returns the end of the cluster of text[at..count) that begins at `at` < count. The text is valid UTF-8. */
size_t grapheme_end(const uint8_t *text, size_t at, size_t count);

/* Returns the last offset in text[from..at] where a cluster begins, as far as two characters can say so; `from`, where
 * one begins, if there is no other. A character begins at `at`. */
size_t grapheme_begin(const uint8_t *text, size_t from, size_t at);

#endif
