/*
 * json_field.h - finds the text of one field in one JSON object: a line of a JSONL file.
 *
 * The whole record is checked against RFC 8259, the other fields too; text/json_scan.h says where that is wider. Whether
 * the text that is packed is UTF-8 is asked afterwards, of that text alone. A field that stands twice in the object is a
 * fault, since programs differ on which one counts; other names may repeat.
 */
#ifndef TOKMAP_CORPUS_JSON_FIELD_H
#define TOKMAP_CORPUS_JSON_FIELD_H

#include "text/json_scan.h"

/* The string that a field holds, in the record, still as it is written there, without its quotes. */
struct json_field {
    size_t offset, count;
    bool escaped; /* it holds a backslash */
};

#define JSON_MISSING "the field is missing" /* the reasons of a record that is a JSON object */
#define JSON_NO_STRING "the field is not a string"

/* False: fault says why. field: the name, UTF-8. Any thread. */
bool json_find(const char *record, size_t count, const char *field, size_t field_bytes, struct json_field *found,
               struct json_fault *fault);

#endif
