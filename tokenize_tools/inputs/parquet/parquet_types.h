/* SPDX-License-Identifier: MIT */
/*
 * parquet_types.h - what the values of a Parquet column mean, and those that are not texts as JSON.
 *
 * A column has a physical type, which is how its values are stored, and may have an annotation, which is what they
 * mean. Without the right annotation the bytes of a number look like a text. So a column is used as what this table
 * says, and a pair that is not in it is refused:
 *
 *     annotation           physical types                        text   ids   kept columns
 *     none                 BYTE_ARRAY                            yes          string
 *     STRING, ENUM, JSON   BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY      yes          string
 *     none, INTEGER        INT32, INT64                                 yes   number
 *     none                 BOOLEAN                                      yes   true or false
 *     none                 FLOAT, DOUBLE                                      number; null for NaN and infinity
 *     FLOAT16              FIXED_LEN_BYTE_ARRAY(2)                            the same
 *     DECIMAL              INT32, INT64, FIXED_LEN_BYTE_ARRAY,                number with all digits, as 0.50
 *                          BYTE_ARRAY
 *     UUID                 FIXED_LEN_BYTE_ARRAY(16)                           string, as 8-4-4-4-12 digits
 *     NULL                 all but INT96                                      null
 *
 * Texts must be UTF-8, which is checked later: many programs write texts as BYTE_ARRAY without an annotation. Bytes of
 * a fixed length without one are hashes and the like. Not in the table are therefore FIXED_LEN_BYTE_ARRAY and INT96
 * without an annotation; DATE, TIME, TIMESTAMP, INTERVAL, BSON, VARIANT, GEOMETRY, and GEOGRAPHY; and what was added
 * to the format later. The files have annotations of two kinds. The newer one counts, unless it is unknown.
 *
 * Any thread.
 */
#ifndef TOKMAP_PARQUET_PARQUET_TYPES_H
#define TOKMAP_PARQUET_PARQUET_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The physical types, with the numbers of the format. */
enum parquet_type {
    PARQUET_BOOLEAN,
    PARQUET_INT32,
    PARQUET_INT64,
    PARQUET_INT96,
    PARQUET_FLOAT,
    PARQUET_DOUBLE,
    PARQUET_BYTE_ARRAY,
    PARQUET_FIXED
};

/* The annotations of columns, with the numbers of the fields of LogicalType. */
enum parquet_annotation {
    PARQUET_NOT_ANNOTATED,
    PARQUET_STRING,
    PARQUET_MAP, /* of groups, as PARQUET_LIST */
    PARQUET_LIST,
    PARQUET_ENUM,
    PARQUET_DECIMAL,
    PARQUET_DATE,
    PARQUET_TIME,
    PARQUET_TIMESTAMP,
    PARQUET_INTERVAL,
    PARQUET_INTEGER,
    PARQUET_NULL,
    PARQUET_JSON,
    PARQUET_BSON,
    PARQUET_UUID,
    PARQUET_FLOAT16,
    PARQUET_VARIANT,
    PARQUET_GEOMETRY,
    PARQUET_GEOGRAPHY,
    PARQUET_UNKNOWN
};

/* Kinds of values. */
enum parquet_meaning {
    PARQUET_IS_OTHER, /* nothing that is read */
    PARQUET_IS_TEXT,
    PARQUET_IS_INTEGER,
    PARQUET_IS_BOOL,
    PARQUET_IS_FLOAT, /* FLOAT, DOUBLE */
    PARQUET_IS_FLOAT16,
    PARQUET_IS_DECIMAL,
    PARQUET_IS_UUID,
    PARQUET_IS_NULL
};

/* A column's type as the schema has it. */
struct parquet_kind {
    enum parquet_type type;
    uint32_t type_bytes; /* of a value of PARQUET_FIXED */
    enum parquet_annotation annotation;
    bool is_unsigned;         /* integers are unsigned */
    int64_t scale, precision; /* of decimals: digits after the point, and all digits */
};

/* Returns the annotation that has a number in the older list of the format (ConvertedType), or in the newer one (the
 * fields of LogicalType); PARQUET_UNKNOWN for others. */
enum parquet_annotation parquet_annotation_old(int64_t number);
enum parquet_annotation parquet_annotation_new(int64_t number);

enum parquet_meaning parquet_meaning(const struct parquet_kind *kind);

/* Writes the type for messages: "INT64 of the type TIMESTAMP". */
void parquet_kind_text(const struct parquet_kind *kind, char *text, size_t capacity);

#define PARQUET_DECIMAL_BYTES 32 /* most bytes of a decimal */
#define PARQUET_DECIMAL_DIGITS 76
#define PARQUET_VALUE_TEXT 96 /* most bytes of the texts below, with a NUL */

/* Writes a decimal: an integer of `count` bytes, the largest first, in two's complement, of whose digits `scale` follow
 * the point. Returns false if it has no bytes or more than PARQUET_DECIMAL_BYTES. */
bool parquet_decimal_text(char *text, const uint8_t *bytes, uint64_t count, int64_t scale);
void parquet_uuid_text(char *text, const uint8_t *bytes); /* of 16 bytes */
double parquet_float16(const uint8_t *bytes);             /* of 2 bytes, the value */

#endif
