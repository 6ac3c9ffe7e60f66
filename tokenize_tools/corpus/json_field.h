/*
 * json_field.h - finds the text of one field in one JSON object, which is a line of a JSONL file.
 *
 * The whole record is checked against RFC 8259, including the other fields; text/json_scan.h lists where the scanner
 * accepts more. Bytes that are not valid UTF-8 are accepted here: the caller checks the field's text. A field that
 * appears twice in the object is an error, because programs differ on which one counts; other names may repeat.
 */
#ifndef TOKMAP_CORPUS_JSON_FIELD_H
#define TOKMAP_CORPUS_JSON_FIELD_H

#include "text/json_scan.h"

/* The string in a field: `count` bytes of the record from `offset` on, without the quotes, escapes not decoded. */
struct json_field {
    size_t offset, count;
    bool escaped; /* it contains a backslash */
};

/* The reasons for a record that is valid JSON but cannot be used. */
#define JSON_FIELD_NOT_OBJECT "the record is not a JSON object"
#define JSON_FIELD_TWICE "the field appears twice in the object"
#define JSON_FIELD_MISSING "the field is missing"
#define JSON_FIELD_NOT_STRING "the field is not a string"

/* Finds the field named `field` (UTF-8, field_bytes long) in a record. Returns true and sets *found, or returns false
 * and sets *fault to the reason and its position in the record. Any thread. */
bool json_field_find(const char *record, size_t count, const char *field, size_t field_bytes, struct json_field *found,
                     struct json_fault *fault);

#endif
