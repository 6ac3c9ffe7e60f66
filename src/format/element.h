/* SPDX-License-Identifier: MIT */
/*
 * element.h - how a file stores one token: the number of bytes, and whether the number has a sign. The codes are those
 * of Megatron's index, and 9 is ours. Tokens of a dataset have 2 or 4 bytes, their width. Elements of as many bytes are
 * tokens as they are; all others are converted when they are read. Any thread may call these functions.
 *
 * A negative id is never in the vocabulary: a dataset of signed elements has a vocabulary of at most
 * element_vocabulary() ids, so the check of ids against the vocabulary finds it where nothing is converted.
 */
#ifndef TOKMAP_FORMAT_ELEMENT_H
#define TOKMAP_FORMAT_ELEMENT_H

#include <stdbool.h>
#include <stdint.h>

enum element {
    ELEMENT_U8 = 1,
    ELEMENT_I8 = 2,
    ELEMENT_I16 = 3,
    ELEMENT_I32 = 4,
    ELEMENT_I64 = 5,
    ELEMENT_U16 = 8,
    ELEMENT_U32 = 9,
};

/* Returns the element of a shard's own tokens, of 2 or 4 bytes. */
static inline enum element element_of_width(uint32_t width)
{
    return width == 4 ? ELEMENT_U32 : ELEMENT_U16;
}

/* Returns whether a code from a file is one of the above. */
bool element_is_known(uint64_t code);

/* Bytes of an element as a power of two: it has 1 << element_shift() bytes. */
static inline uint32_t element_shift(enum element element)
{
    switch (element) {
    case ELEMENT_U8:
    case ELEMENT_I8:
        return 0;
    case ELEMENT_I16:
    case ELEMENT_U16:
        return 1;
    case ELEMENT_I32:
    case ELEMENT_U32:
        return 2;
    case ELEMENT_I64:
        break;
    }
    return 3;
}

/* Bytes of an element. */
static inline uint32_t element_bytes(enum element element)
{
    return 1u << element_shift(element);
}

/* Returns the code of unsigned elements of 1, 2, or 4 bytes, or I64 for 8. */
static inline enum element element_of_bytes(uint64_t bytes)
{
    return bytes == 1 ? ELEMENT_U8 : bytes == 2 ? ELEMENT_U16 : bytes == 4 ? ELEMENT_U32 : ELEMENT_I64;
}

/* Returns the name of a code for messages: "uint16". */
static inline const char *element_name(uint64_t code)
{
    static const char *const names[] = {"unknown", "uint8",   "int8",    "int16",  "int32",
                                        "int64",   "float64", "float32", "uint16", "uint32"};
    return code < sizeof names / sizeof names[0] ? names[code] : names[0];
}

/* Returns the width of a dataset of these elements: 2 for 1 and 2 bytes, 4 for 4 and 8. */
static inline uint32_t element_width(enum element element)
{
    return element_shift(element) >= 2 ? 4 : 2;
}

/* Returns the number of ids that the element can hold and a dataset can have: 2^8, 2^7, 2^15, 2^31, 2^32, 2^16, or
 * 2^32. */
uint64_t element_vocabulary(enum element element);

/* Converts `count` elements, which may have any alignment, to ids of `width` bytes (2 or 4, at least element_width()).
 * Returns the number of elements converted: it is less than `count` if the element after them is negative or does not
 * fit in 32 bits. */
uint64_t element_convert(enum element element, const void *from, uint64_t count, uint32_t width, void *into);

/* Returns the value of one element, for messages. */
int64_t element_value(enum element element, const void *from);

#endif
