/* element.c - see element.h. */
#include "element.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"

uint32_t element_bytes(uint64_t code)
{
    switch (code) {
    case ELEMENT_U8:
    case ELEMENT_I8:
        return 1;
    case ELEMENT_I16:
    case ELEMENT_U16:
        return 2;
    case ELEMENT_I32:
    case ELEMENT_U32:
        return 4;
    case ELEMENT_I64:
        return 8;
    default:
        return 0;
    }
}

uint32_t element_width(enum element code)
{
    return element_bytes(code) <= 2 ? 2 : 4;
}

uint64_t element_vocabulary(enum element code)
{
    switch (code) {
    case ELEMENT_U8:
        return (uint64_t)1 << 8;
    case ELEMENT_I8:
        return (uint64_t)1 << 7;
    case ELEMENT_I16:
        return (uint64_t)1 << 15;
    case ELEMENT_I32:
        return (uint64_t)1 << 31;
    case ELEMENT_U16:
        return (uint64_t)1 << 16;
    case ELEMENT_U32:
        return (uint64_t)1 << 32;
    case ELEMENT_I64:
        return UINT32_MAX;
    }
    return 0;
}

enum element element_of_bytes(uint64_t bytes)
{
    return bytes == 1   ? ELEMENT_U8
           : bytes == 2 ? ELEMENT_U16
           : bytes == 4 ? ELEMENT_U32
           : bytes == 8 ? ELEMENT_I64
                        : (enum element)0;
}

const char *element_name(uint64_t code)
{
    static const char *const names[] = {"unknown", "uint8",   "int8",    "int16",  "int32",
                                        "int64",   "float64", "float32", "uint16", "uint32"};
    return code < sizeof names / sizeof names[0] ? names[code] : names[0];
}

/* ---- conversion ---- */

static uint64_t widen_unsigned(const uint8_t *from, uint64_t count, uint8_t *into)
{
    uint8_t largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        largest = from[i] > largest ? from[i] : largest;
        store16(into + 2 * i, from[i]);
    }
    return largest;
}

static uint64_t widen_signed(const uint8_t *from, uint64_t count, uint8_t *into)
{
    uint16_t largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint16_t id = (uint16_t)(int16_t)(int8_t)from[i];
        largest = id > largest ? id : largest;
        store16(into + 2 * i, id);
    }
    return largest;
}

static uint64_t narrow(const uint8_t *from, uint64_t count, uint8_t *into)
{
    uint32_t largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t wide = load64(from + 8 * i);
        const uint32_t id = wide > UINT32_MAX ? UINT32_MAX : (uint32_t)wide;
        largest = id > largest ? id : largest;
        store32(into + 4 * i, id);
    }
    return largest;
}

static uint64_t largest16(const uint8_t *tokens, uint64_t count)
{
    uint16_t largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint16_t id = load16(tokens + 2 * i);
        largest = id > largest ? id : largest;
    }
    return largest;
}

static uint64_t largest32(const uint8_t *tokens, uint64_t count)
{
    uint32_t largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t id = load32(tokens + 4 * i);
        largest = id > largest ? id : largest;
    }
    return largest;
}

uint64_t element_convert(enum element code, const void *from, uint64_t count, void *into)
{
    switch (code) {
    case ELEMENT_U8:
        assert(from != into);
        return widen_unsigned(from, count, into);
    case ELEMENT_I8:
        assert(from != into);
        return widen_signed(from, count, into);
    case ELEMENT_I64:
        return narrow(from, count, into);
    case ELEMENT_I16:
    case ELEMENT_U16:
        if (from != into && count)
            memcpy(into, from, (size_t)(2 * count));
        return largest16(into, count);
    case ELEMENT_I32:
    case ELEMENT_U32:
        if (from != into && count)
            memcpy(into, from, (size_t)(4 * count));
        return largest32(into, count);
    }
    assert(!"code is one of enum element");
    return 0;
}
