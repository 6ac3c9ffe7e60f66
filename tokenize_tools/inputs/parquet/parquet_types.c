/* SPDX-License-Identifier: MIT */
#include "parquet_types.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const char *const types[] = {"BOOLEAN", "INT32",  "INT64",      "INT96",
                                    "FLOAT",   "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"};

static const char *const annotations[] = {"",     "STRING",    "MAP",      "LIST",     "ENUM",      "DECIMAL", "DATE",
                                          "TIME", "TIMESTAMP", "INTERVAL", "INTEGER",  "NULL",      "JSON",    "BSON",
                                          "UUID", "FLOAT16",   "VARIANT",  "GEOMETRY", "GEOGRAPHY", ""};

enum parquet_annotation parquet_annotation_old(int64_t number)
{
    static const uint8_t old[] = {
        PARQUET_STRING,  PARQUET_MAP,     PARQUET_MAP,     PARQUET_LIST,      PARQUET_ENUM,      PARQUET_DECIMAL,
        PARQUET_DATE,    PARQUET_TIME,    PARQUET_TIME,    PARQUET_TIMESTAMP, PARQUET_TIMESTAMP, PARQUET_INTEGER,
        PARQUET_INTEGER, PARQUET_INTEGER, PARQUET_INTEGER, PARQUET_INTEGER,   PARQUET_INTEGER,   PARQUET_INTEGER,
        PARQUET_INTEGER, PARQUET_JSON,    PARQUET_BSON,    PARQUET_INTERVAL};
    return number < 0 || number >= (int64_t)sizeof old ? PARQUET_UNKNOWN : (enum parquet_annotation)old[number];
}

enum parquet_annotation parquet_annotation_new(int64_t number)
{
    return number < 1 || number > PARQUET_UNKNOWN ? PARQUET_UNKNOWN : (enum parquet_annotation)number;
}

#define ANY_BUT_INT96 (~(1u << PARQUET_INT96))
#define INTEGERS (1u << PARQUET_INT32 | 1u << PARQUET_INT64)
#define FLOATS (1u << PARQUET_FLOAT | 1u << PARQUET_DOUBLE)
#define BYTES (1u << PARQUET_BYTE_ARRAY)
#define FIXED (1u << PARQUET_FIXED)

/* The table of parquet_types.h. */
static const struct {
    enum parquet_annotation annotation;
    unsigned types;      /* bit t: the physical type t */
    uint32_t type_bytes; /* of PARQUET_FIXED; 0: any */
    enum parquet_meaning meaning;
} meanings[] = {
    {PARQUET_NOT_ANNOTATED, BYTES, 0, PARQUET_IS_TEXT},
    {PARQUET_STRING, BYTES | FIXED, 0, PARQUET_IS_TEXT},
    {PARQUET_ENUM, BYTES | FIXED, 0, PARQUET_IS_TEXT},
    {PARQUET_JSON, BYTES | FIXED, 0, PARQUET_IS_TEXT},
    {PARQUET_NOT_ANNOTATED, INTEGERS, 0, PARQUET_IS_INTEGER},
    {PARQUET_INTEGER, INTEGERS, 0, PARQUET_IS_INTEGER},
    {PARQUET_NOT_ANNOTATED, 1u << PARQUET_BOOLEAN, 0, PARQUET_IS_BOOL},
    {PARQUET_NOT_ANNOTATED, FLOATS, 0, PARQUET_IS_FLOAT},
    {PARQUET_FLOAT16, FIXED, 2, PARQUET_IS_FLOAT16},
    {PARQUET_DECIMAL, INTEGERS | BYTES | FIXED, 0, PARQUET_IS_DECIMAL},
    {PARQUET_UUID, FIXED, 16, PARQUET_IS_UUID},
    {PARQUET_NULL, ANY_BUT_INT96, 0, PARQUET_IS_NULL},
};

static bool is_decimal(const struct parquet_kind *kind)
{
    return kind->type_bytes <= PARQUET_DECIMAL_BYTES && kind->precision > 0 &&
           kind->precision <= PARQUET_DECIMAL_DIGITS && kind->scale >= 0 && kind->scale <= kind->precision;
}

enum parquet_meaning parquet_meaning(const struct parquet_kind *kind)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        if (meanings[i].annotation != kind->annotation || !(meanings[i].types >> kind->type & 1) ||
            (meanings[i].type_bytes && meanings[i].type_bytes != kind->type_bytes))
            continue;
        const bool wrong = meanings[i].meaning == PARQUET_IS_DECIMAL && !is_decimal(kind);
        return wrong ? PARQUET_IS_OTHER : meanings[i].meaning;
    }
    return PARQUET_IS_OTHER;
}

void parquet_kind_text(const struct parquet_kind *kind, char *text, size_t capacity)
{
    const char *type = types[kind->type], *annotation = annotations[kind->annotation];
    if (kind->annotation == PARQUET_DECIMAL)
        (void)snprintf(text, capacity, "%s of the type DECIMAL(%" PRId64 ", %" PRId64 ")", type, kind->precision,
                       kind->scale);
    else if (kind->annotation == PARQUET_UNKNOWN)
        (void)snprintf(text, capacity, "%s of a type that this tokmap does not know", type);
    else
        (void)snprintf(text, capacity, "%s%s%s", type, *annotation ? " of the type " : "", annotation);
}

/* ---- values ---- */

/* Divides a number, whose largest part is the first, and returns the remainder. */
static uint32_t divide(uint32_t *parts, size_t count, uint32_t divisor)
{
    uint64_t rest = 0;
    for (size_t i = 0; i < count; i++) {
        rest = rest << 32 | parts[i];
        parts[i] = (uint32_t)(rest / divisor);
        rest %= divisor;
    }
    return (uint32_t)rest;
}

bool parquet_decimal_text(char *text, const uint8_t *bytes, uint64_t count, int64_t scale)
{
    enum { PARTS = PARQUET_DECIMAL_BYTES / 4 };
    uint32_t parts[PARTS] = {0}, carry = 1;
    char digits[PARQUET_VALUE_TEXT]; /* the last one first */
    int64_t made = 0, last = 0;
    assert(scale >= 0 && scale <= PARQUET_DECIMAL_DIGITS);
    if (!count || count > PARQUET_DECIMAL_BYTES)
        return false;
    const bool negative = bytes[0] >> 7;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t place = count - 1 - i;
        parts[PARTS - 1 - place / 4] |= (uint32_t)(bytes[i] ^ (negative ? 0xff : 0)) << 8 * (place % 4);
    }
    for (size_t i = PARTS; i-- > 0 && negative && carry;)
        carry = !++parts[i];
    /* 2^255 has 77 digits. Zeros before the others are left out, but one before the point. */
    for (; made < PARQUET_DECIMAL_DIGITS + 2; made++) {
        digits[made] = (char)('0' + divide(parts, PARTS, 10));
        if (digits[made] != '0')
            last = made;
    }
    if (negative)
        *text++ = '-';
    for (int64_t i = last > scale ? last : scale; i >= 0; i--) {
        *text++ = digits[i];
        if (i && i == scale)
            *text++ = '.';
    }
    *text = '\0';
    return true;
}

void parquet_uuid_text(char *text, const uint8_t *bytes)
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *text++ = '-';
        *text++ = digits[bytes[i] >> 4];
        *text++ = digits[bytes[i] & 15];
    }
    *text = '\0';
}

double parquet_float16(const uint8_t *bytes)
{
    const int exponent = bytes[1] >> 2 & 31, fraction = (bytes[1] & 3) << 8 | bytes[0];
    double value;
    if (exponent == 31)
        value = fraction ? (double)NAN : (double)INFINITY;
    else
        value = ldexp(exponent ? fraction | 1 << 10 : fraction, (exponent ? exponent : 1) - 25);
    return bytes[1] >> 7 ? -value : value;
}
