/* SPDX-License-Identifier: MIT */
/*
 * csv_field.h - finds the text of one field in one record of CSV or TSV.
 *
 * The rules are those of RFC 4180 and of Python's csv module with strict=True: a field that begins with a quote ends at
 * the next quote that is not doubled, and may contain separators and line breaks; a quote in a field that does not
 * begin with one is an ordinary byte. Spaces belong to the fields. A carriage return outside of quotes is a fault
 * unless it ends the record, because programs differ on whether it ends one.
 */
#ifndef TOKMAP_CORPUS_CSV_FIELD_H
#define TOKMAP_CORPUS_CSV_FIELD_H

#include "text/json_scan.h"

/* A field: `count` bytes of the record from `offset` on, without its quotes, doubled quotes not decoded. */
struct csv_field {
    size_t offset, count;
    bool quoted, doubled; /* it is in quotes; it contains a doubled quote */
};

/* State of csv_field_next() from one field to the next. A reader begins with the record and zeros. */
struct csv_record {
    const char *bytes;
    size_t count; /* without the end of the line */
    char separator;
    size_t at;
    bool ended;              /* the last field has been taken */
    struct json_fault fault; /* its reason is NULL without a fault */
};

/* Returns the length of a record without the newline, and the carriage return before it, that end it. */
size_t csv_record_length(const char *record, size_t count);

/* Takes the next field. Returns false after the last one, and after a fault. Any thread. */
bool csv_field_next(struct csv_record *record, struct csv_field *field);

/* Returns true if a field of this record, with doubled quotes decoded, is `text`, which is terminated. */
bool csv_field_equals(const struct csv_record *record, const struct csv_field *field, const char *text);

/* Makes one quote of each doubled one, in place, and returns the number of bytes that remain. */
size_t csv_field_decode(char *text, size_t count);

#endif
