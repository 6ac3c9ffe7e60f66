/* SPDX-License-Identifier: MIT */
/*
 * json_field.h - finds fields in one JSON object, which is a line of a JSONL file: the text of one, or the values of
 * several.
 *
 * The whole record is checked against RFC 8259, including the other fields; text/json_scan.h lists where the scanner
 * accepts more. In the other fields, NaN, Infinity, and -Infinity are accepted and counted, because Python's
 * json.dump() writes them for numbers of pandas and NumPy. Bytes that are not valid UTF-8 are accepted here: the caller
 * checks the field's text. A field that appears twice in the object is an error, because programs differ on which one
 * counts; other names may repeat.
 *
 * A name may reach into objects: "meta.url" is the field "url" of the object in the field "meta". But if an object has
 * a field whose own name is "meta.url", that one is meant.
 */
#ifndef TOKMAP_CORPUS_JSON_FIELD_H
#define TOKMAP_CORPUS_JSON_FIELD_H

#include "text/json_scan.h"

/* The string in a field: `count` bytes of the record from `offset` on, without the quotes, escapes not decoded. */
struct json_field {
    size_t offset, count;
    bool escaped;        /* it contains a backslash */
    uint64_t not_finite; /* number of values of the record that are NaN or Infinity */
};

/* The reasons for a record that is valid JSON but cannot be used. */
#define JSON_FIELD_NOT_OBJECT "the record is not a JSON object"
#define JSON_FIELD_TWICE "the field appears twice in the object"
#define JSON_FIELD_MISSING "the field is missing"
#define JSON_FIELD_NOT_STRING "the field is not a string"
#define JSON_FIELD_NULL "the field is null"
#define JSON_FIELD_NOT_LIST "the field is not a list"

/* Finds the field named `field` (UTF-8, field_bytes long) in a record. Returns true and sets *found, or returns false
 * and sets *fault to the reason and its position in the record. Any thread. */
bool json_field_find(const char *record, size_t count, const char *field, size_t field_bytes, struct json_field *found,
                     struct json_fault *fault);

/* A field that is wanted, and its value in the record. */
struct json_wanted {
    const char *name; /* UTF-8; set by the caller, as the next two */
    size_t name_bytes;
    bool numbers; /* a list is expected that contains numbers, or true and false, but no lists and no strings */

    enum json_kind kind;  /* results. JSON_NOTHING: the record has no such field */
    size_t offset, count; /* of the value in the record; a string is without its quotes */
    bool escaped;         /* it is a string that contains a backslash */
};

/* Finds several fields in a record. A missing field is not a fault. Returns false and sets *fault if the record cannot
 * be used, and then, if a field appears twice or has a NaN or Infinity (JSON_NOT_FINITE), *wrong to its number.
 *   fast   lists in fields with `numbers` are taken up to their first closing bracket without a look at what is in
 *          them. If the caller finds that such a list is not one of numbers, or if the result is false, the result
 *          counts for nothing; without `fast` it does.
 *   not_finite   how often NaN or Infinity is a value in the other fields */
bool json_fields_find(const char *record, size_t count, struct json_wanted *wanted, size_t wanted_count, bool fast,
                      uint64_t *not_finite, struct json_fault *fault, size_t *wrong);

#endif
