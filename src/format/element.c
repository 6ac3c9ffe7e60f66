/* SPDX-License-Identifier: MIT */
/* element.c - see element.h. The loops are simple enough for the compiler to use vector instructions. */
#include "element.h"

#include <assert.h>
#include <string.h>

bool element_is_known(uint64_t code)
{
    return (code >= ELEMENT_U8 && code <= ELEMENT_I64) || code == ELEMENT_U16 || code == ELEMENT_U32;
}

uint64_t element_vocabulary(enum element element)
{
    switch (element) {
    case ELEMENT_U8:
        return (uint64_t)1 << 8;
    case ELEMENT_I8:
        return (uint64_t)1 << 7;
    case ELEMENT_I16:
        return (uint64_t)1 << 15;
    case ELEMENT_U16:
        return (uint64_t)1 << 16;
    case ELEMENT_I32:
        return (uint64_t)1 << 31;
    case ELEMENT_U32:
    case ELEMENT_I64:
        break;
    }
    return (uint64_t)1 << 32;
}

/* Converts a group of elements at a time. The bits of all values together tell whether one of them is negative or too
 * large; only then the group is converted again, one element after another, to find which one. */
#define CONVERT(NAME, FROM, INTO, BITS_OF, BAD)                                                                        \
    static uint64_t NAME(const uint8_t *from, uint64_t count, uint8_t *into)                                           \
    {                                                                                                                  \
        enum { GROUP = 64 };                                                                                           \
        FROM in[GROUP];                                                                                                \
        INTO out[GROUP];                                                                                               \
        for (uint64_t at = 0; at < count;) {                                                                           \
            const uint64_t part = count - at < GROUP ? count - at : GROUP;                                             \
            BITS_OF bits = 0;                                                                                          \
            memcpy(in, from + at * sizeof(FROM), part * sizeof(FROM));                                                 \
            for (uint64_t i = 0; i < part; i++) {                                                                      \
                bits |= (BITS_OF)in[i];                                                                                \
                out[i] = (INTO)in[i];                                                                                  \
            }                                                                                                          \
            uint64_t good = part;                                                                                      \
            if (bits & (BITS_OF)(BAD))                                                                                 \
                for (good = 0; !((BITS_OF)in[good] & (BITS_OF)(BAD));)                                                 \
                    good++;                                                                                            \
            memcpy(into + at * sizeof(INTO), out, good * sizeof(INTO));                                                \
            at += good;                                                                                                \
            if (good < part)                                                                                           \
                return at;                                                                                             \
        }                                                                                                              \
        return count;                                                                                                  \
    }
CONVERT(u8_to_16, uint8_t, uint16_t, uint8_t, 0)
CONVERT(u8_to_32, uint8_t, uint32_t, uint8_t, 0)
CONVERT(i8_to_16, uint8_t, uint16_t, uint8_t, 0x80)
CONVERT(i8_to_32, uint8_t, uint32_t, uint8_t, 0x80)
CONVERT(u16_to_16, uint16_t, uint16_t, uint16_t, 0)
CONVERT(u16_to_32, uint16_t, uint32_t, uint16_t, 0)
CONVERT(i16_to_16, uint16_t, uint16_t, uint16_t, 0x8000)
CONVERT(i16_to_32, uint16_t, uint32_t, uint16_t, 0x8000)
CONVERT(u32_to_32, uint32_t, uint32_t, uint32_t, 0)
CONVERT(i32_to_32, uint32_t, uint32_t, uint32_t, 0x80000000u)
CONVERT(i64_to_32, uint64_t, uint32_t, uint64_t, 0xffffffff00000000u)

uint64_t element_convert(enum element element, const void *from, uint64_t count, uint32_t width, void *into)
{
    assert((width == 2 || width == 4) && width >= element_width(element));
    switch (element) {
    case ELEMENT_U8:
        return width == 2 ? u8_to_16(from, count, into) : u8_to_32(from, count, into);
    case ELEMENT_I8:
        return width == 2 ? i8_to_16(from, count, into) : i8_to_32(from, count, into);
    case ELEMENT_U16:
        return width == 2 ? u16_to_16(from, count, into) : u16_to_32(from, count, into);
    case ELEMENT_I16:
        return width == 2 ? i16_to_16(from, count, into) : i16_to_32(from, count, into);
    case ELEMENT_U32:
        return u32_to_32(from, count, into);
    case ELEMENT_I32:
        return i32_to_32(from, count, into);
    case ELEMENT_I64:
        break;
    }
    return i64_to_32(from, count, into);
}

int64_t element_value(enum element element, const void *from)
{
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (element_shift(element)) {
    case 0:
        memcpy(&one, from, 1);
        return element == ELEMENT_I8 ? (int64_t)(int8_t)one : (int64_t)one;
    case 1:
        memcpy(&two, from, 2);
        return element == ELEMENT_I16 ? (int64_t)(int16_t)two : (int64_t)two;
    case 2:
        memcpy(&four, from, 4);
        return element == ELEMENT_I32 ? (int64_t)(int32_t)four : (int64_t)four;
    default:
        memcpy(&eight, from, 8);
        return (int64_t)eight;
    }
}
