/*
 * classes.h - the class of every character (Unicode 16.0, as the reference tokenizers' engines have it), by its bytes.
 *
 * classes.c is generated: make_classes.py beside it says from what. Bytes that are no UTF-8 get some class; no read
 * leaves the tables whatever the bytes.
 */
#ifndef TOKMAP_UNICODE_CLASSES_H
#define TOKMAP_UNICODE_CLASSES_H

#include <stddef.h>
#include <stdint.h>

enum {
    CLASS_OTHER, /* controls, formats, unassigned */
    CLASS_UPPER,
    CLASS_TITLE,
    CLASS_LOWER,
    CLASS_MODIFIER,
    CLASS_LETTER, /* Lo: without case */
    CLASS_MARK,
    CLASS_NUMBER,
    CLASS_PUNCTUATION,
    CLASS_SYMBOL,
    CLASS_SPACE,   /* \s but the next */
    CLASS_NEWLINE, /* CR and LF */
    CLASS_KINDS,
    CLASS_KIND = 15,
    CLASS_HAN = 16, /* \p{Han} */
    CLASS_CJK = 32, /* U+4E00-9FA5 and U+3040-30FF: what DeepSeek sets apart */
    CLASS_VALUES = 64
};

#define CLASS_FIRST 4096
#define CLASS_MIDDLES 34
#define CLASS_BLOCKS 422

extern const uint8_t class_ascii[128];
extern const uint16_t class_first[CLASS_FIRST];          /* by the first two bytes; under F0-FF a row of class_middle */
extern const uint16_t class_middle[CLASS_MIDDLES][64];   /* by the third of four bytes */
extern const uint8_t class_blocks[CLASS_BLOCKS][64];     /* by the last byte */

/* Bytes of the character that starts with `lead`, 1 for what starts none. */
static inline uint32_t character_bytes(uint8_t lead)
{
    return lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

/* The class of the character at `at`; as many bytes as its lead says must be readable. */
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
