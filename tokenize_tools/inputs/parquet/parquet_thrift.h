/* SPDX-License-Identifier: MIT */
/*
 * parquet_thrift.h - reads the structs of a Parquet file, which are in Thrift's compact protocol.
 *
 * A struct is a list of fields, each with a number and a type, and ends with a zero byte. The reader takes the fields
 * that it knows and skips the others, whatever they contain:
 *
 *     struct thrift_field field = {0};
 *     while (thrift_field_next(&thrift, &field))
 *         switch (field.id) {
 *         case 1: rows = thrift_integer(&thrift, &field); break;
 *         default: thrift_skip(&thrift, &field);
 *         }
 *     if (thrift.fault) ...
 *
 * The bytes are not trusted. A fault is kept: after the first one every function returns 0, false, or an empty result,
 * so that the caller needs to check only once. Lists cannot claim more elements than bytes follow, and structs nest at
 * most THRIFT_DEPTH_MOST deep.
 *
 * Thread rule: one thread at a time per reader.
 */
#ifndef TOKMAP_PARQUET_PARQUET_THRIFT_H
#define TOKMAP_PARQUET_PARQUET_THRIFT_H

#include <stdbool.h>
#include <stdint.h>

#define THRIFT_DEPTH_MOST 32

enum thrift_type {
    THRIFT_STOP,
    THRIFT_TRUE,
    THRIFT_FALSE,
    THRIFT_BYTE,
    THRIFT_I16,
    THRIFT_I32,
    THRIFT_I64,
    THRIFT_DOUBLE,
    THRIFT_BINARY,
    THRIFT_LIST,
    THRIFT_SET,
    THRIFT_MAP,
    THRIFT_STRUCT
};

#define THRIFT_FAULT_SHORT "its bytes end inside a struct"

/* Begins as {bytes, count}. */
struct thrift {
    const uint8_t *bytes;
    uint64_t count, at;
    const char *fault; /* the fault, a static text, or NULL; THRIFT_FAULT_SHORT if more bytes may help */
};

/* The field that was read last. Begins as zeros for each struct. */
struct thrift_field {
    int64_t id;
    enum thrift_type type;
};

/* Reads the head of the next field. Returns false after the last one, and after a fault. */
bool thrift_field_next(struct thrift *thrift, struct thrift_field *field);

/* Read the value of a field. A value of another type is a fault. */
int64_t thrift_integer(struct thrift *thrift, const struct thrift_field *field); /* i16, i32, i64 */
bool thrift_bool(struct thrift *thrift, const struct thrift_field *field);
/* Returns where the bytes of a string are, and sets *count to their number. */
const char *thrift_binary(struct thrift *thrift, const struct thrift_field *field, uint64_t *count);
/* Begins a list of structs: sets *count to their number. The caller then reads the structs, one after another. */
bool thrift_structs(struct thrift *thrift, const struct thrift_field *field, uint64_t *count);
/* Returns whether the value is a struct, whose fields the caller then reads. */
bool thrift_struct(struct thrift *thrift, const struct thrift_field *field);

/* Skips the value of a field, of any type. */
void thrift_skip(struct thrift *thrift, const struct thrift_field *field);

#endif
