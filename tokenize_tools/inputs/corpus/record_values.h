/* SPDX-License-Identifier: MIT */
/*
 * record_values.h - makes a document from the values of a record's fields: one or two texts, lists of ids, messages,
 * and the values that are kept as columns. Parts of records.h, which finds the fields.
 */
#ifndef TOKMAP_CORPUS_RECORD_VALUES_H
#define TOKMAP_CORPUS_RECORD_VALUES_H

#include "document_make.h"

/* Objects and arrays inside one another in a value that is kept as a column: as many as an index takes at most
 * (COLUMN_DEPTH of format/layout.h). */
#define CORPUS_VALUE_DEPTH 64
#define CORPUS_VALUE_DEEP "the value of the field has objects and arrays nested more than 64 deep"

/* The value of a field. */
struct record_value {
    enum json_kind kind;    /* JSON_NOTHING: the record has no such field. A field of a table is a string */
    char *text;             /* inside the batch; a string is without its quotes */
    uint64_t bytes, offset; /* offset: of the text in the stream */
    uint64_t line;          /* number of its line, from 1 */
    bool escaped, doubled;  /* as in struct source_text */
    bool quotes;            /* the byte before a string and the byte after it are the quotes of JSON */
    const void *numbers;    /* a list that was read and checked before: number_count ids of 4 bytes, or values of a mask
                             * of 1 byte, in memory of the batch. NULL: the list is in `text` */
    uint64_t number_count;
};

/* Writes a text as a string of JSON, and returns its length. `into` has room for 6 bytes for each byte, and for 2. */
uint64_t json_string_write(char *into, const char *text, uint64_t count);

/* Makes a document from the values of these fields, or adds an issue. Sets *wrong_list, and adds neither, if a list is
 * not one of numbers; the text of a list is either valid JSON or `unchecked`. */
enum tokmap_status record_document(struct making *making, const struct source_record *source,
                                   const struct record_value *values, bool unchecked, bool *wrong_list);

#endif
