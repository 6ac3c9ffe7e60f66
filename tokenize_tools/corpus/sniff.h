/*
 * sniff.h - judges by its first bytes what a file contains that its name does not tell: one text, records, or binary
 * data.
 *
 * A file of records that is read as one text becomes one document of raw JSON or CSV, and nobody notices. So text that
 * begins like records is refused, and the user says what it is. The rules accept ordinary text, source code, and logs:
 *
 *   JSON    the text begins with an object, { "NAME":, or with an array of objects, [ { "NAME":, or is an array whose
 *           first value is a string
 *   CSV     the first line is a list of names (short, distinct, beginning with a letter, without spaces around them);
 *           the rows have as many fields as it has names, in at least 3 rows of 3 names, or 10 rows of 2 names, or
 *           1 row if one of the names is the wanted field
 *   TSV     the same, but 3 rows are enough also with 2 names
 *   pointer what git leaves in the place of a file that Git LFS has not fetched
 *   page    the beginning of an HTML page; only what a web server sends under another name is refused for it
 *   binary  a zero byte
 */
#ifndef TOKMAP_CORPUS_SNIFF_H
#define TOKMAP_CORPUS_SNIFF_H

#include <stdbool.h>
#include <stdint.h>

#define SNIFF_BYTES 8192 /* how many bytes of a file are judged */

enum sniff_kind {
    SNIFF_TEXT,
    SNIFF_JSONL,   /* the first line is an object, or is longer than the bytes */
    SNIFF_OBJECT,  /* an object that spans several lines */
    SNIFF_ARRAY,   /* an array of objects */
    SNIFF_STRINGS, /* an array that begins with a string, which no format of records reads */
    SNIFF_CSV,
    SNIFF_TSV,
    SNIFF_POINTER,
    SNIFF_PAGE,
    SNIFF_BINARY
};

/* Judges the first `count` bytes of a file; whole: they are all of it. field: the wanted field of records. Any thread.
 */
enum sniff_kind sniff(const char *bytes, uint64_t count, bool whole, const char *field);

#endif
