/* SPDX-License-Identifier: MIT */
/*
 * wp_characters.h - what becomes of each character of a text on its way to words: a BertNormalizer and a
 * BertPreTokenizer in one table.
 *
 * The normalizer goes over the text up to five times (it takes out control characters, puts spaces around Chinese ones,
 * decomposes, takes out marks, and makes letters small), and the pre-tokenizer twice. But what they do with a character
 * hardly depends on others, so it is found once, when the tokenizer is opened. The exception is the order of marks: see
 * WP_MARK.
 *
 * Example, with all switches on: "É" becomes "e" in a word (WP_PUT), "," is a word of its own (WP_ALONE), and U+0301
 * nothing (WP_DROP).
 */
#ifndef TOKMAP_WORDS_WP_CHARACTERS_H
#define TOKMAP_WORDS_WP_CHARACTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "tokmap/tokmap.h"

/* The switches of a BertNormalizer; all false: none. */
struct wp_rules {
    bool clean, chinese, strip, lower;
};

/* What becomes of a character, in the low WP_ACTION_BITS of an entry. */
enum wp_action {
    WP_KEEP,      /* itself, in a word */
    WP_DROP,      /* nothing; the word continues */
    WP_SPACE,     /* nothing; the word ends */
    WP_ALONE,     /* itself, as a word of its own */
    WP_PUT,       /* the character in the rest of the entry, in a word */
    WP_PUT_ALONE, /* that character, as a word of its own */
    WP_MARK,      /* that character, in a word; it is a mark whose place among other marks may have to change */
    WP_SYLLABLE,  /* a Hangul syllable: its two or three letters */
    WP_SEVERAL    /* the entries from lists[rest of the entry] on, up to WP_LIST_END */
};
#define WP_ACTION_BITS 4
#define WP_LIST_END UINT32_MAX

#define WP_BLOCK_BITS 7 /* characters are looked up in blocks of 2^7 */

/* What becomes of an ASCII character. */
enum wp_ascii {
    WP_ASCII_WORD = 1,
    WP_ASCII_ALONE = 2,
    WP_ASCII_DROP = 4 /* none of the bits: a space */
};

/* Immutable after wp_characters_new(). */
struct wp_characters {
    uint32_t *entries; /* blocks of 2^WP_BLOCK_BITS */
    uint32_t blocks, block_room;
    uint32_t *lists;
    uint32_t list_count, list_room;
    uint8_t ascii_put[128], ascii_is[128];      /* the character that it becomes; enum wp_ascii */
    uint16_t firsts[0x110000 >> WP_BLOCK_BITS]; /* the block of each 2^WP_BLOCK_BITS characters */
};

/* Makes the table of a BertNormalizer that a BertPreTokenizer follows; free it with wp_characters_free(). On failure
 * *characters is NULL. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status wp_characters_new(struct wp_characters **characters, struct wp_rules rules,
                                     struct tokmap_error *error);
/* NULL is allowed. */
void wp_characters_free(struct wp_characters *characters);

/* Returns the entry of a character: its action, and above WP_ACTION_BITS the rest. */
static inline uint32_t wp_character(const struct wp_characters *characters, uint32_t code)
{
    return characters->entries[(uint32_t)characters->firsts[code >> WP_BLOCK_BITS] << WP_BLOCK_BITS |
                               (code & ((1u << WP_BLOCK_BITS) - 1))];
}

#endif
