/* SPDX-License-Identifier: MIT */
/*
 * classes.h - the class of each character, looked up directly by the bytes of its UTF-8. The classes are those of
 * Unicode 16.0, as the regular expression engines of both reference tokenizers have them.
 *
 * make_classes.py generates classes.c. The lookup is safe on any bytes: invalid UTF-8 gets some class, and no access
 * leaves the tables.
 */
#ifndef TOKMAP_UNICODE_CLASSES_H
#define TOKMAP_UNICODE_CLASSES_H

#include <stddef.h>
#include <stdint.h>

enum {
    CLASS_OTHER, /* everything else: controls, formats, private use, unassigned */
    CLASS_UPPER,
    CLASS_TITLE,
    CLASS_LOWER,
    CLASS_MODIFIER,
    CLASS_LETTER, /* Lo: letters without case */
    CLASS_MARK,
    CLASS_NUMBER,
    CLASS_PUNCTUATION,
    CLASS_SYMBOL,
    CLASS_SPACE,   /* \s except CR and LF */
    CLASS_NEWLINE, /* CR and LF */
    CLASS_KINDS,
    CLASS_KIND = 15, /* mask of the values above */
    CLASS_HAN = 16,  /* flag: \p{Han} */
    CLASS_CJK = 32   /* flag: U+4E00-9FA5 and U+3040-30FF, the runs that DeepSeek's pattern isolates */
};

#define CLASS_FIRST 4096
#define CLASS_MIDDLES 34
#define CLASS_BLOCKS 422

/* The trie: class_first is indexed by the low 6 bits of the first two bytes and leads to a block; for first bytes from
 * F0 on, it leads to a row of class_middle, which is indexed by the third byte and leads to the block. A block is
 * indexed by the last byte; characters of two bytes have blocks of equal entries. */
extern const uint8_t class_ascii[128];
extern const uint16_t class_first[CLASS_FIRST];
extern const uint16_t class_middle[CLASS_MIDDLES][64];
extern const uint8_t class_blocks[CLASS_BLOCKS][64];

/* Returns the number of bytes of the character whose first byte is `lead`; 1 if no character begins with this byte. */
static inline uint32_t character_bytes(uint8_t lead)
{
    return lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

/* Returns the class of the character at `at`: one of the kinds, with flags. character_bytes(at[0]) bytes must be
 * readable. */
static inline uint8_t character_class(const uint8_t *at)
{
    if (at[0] < 0x80)
        return class_ascii[at[0]];
    if (at[0] < 0xC0)
        return CLASS_OTHER;
    const uint32_t first = class_first[(at[0] & 63u) << 6 | (at[1] & 63u)];
    if (at[0] < 0xE0)
        return class_blocks[first][0];
    if (at[0] < 0xF0)
        return class_blocks[first][at[2] & 63];
    return class_blocks[class_middle[first][at[2] & 63]][at[3] & 63];
}

#endif
