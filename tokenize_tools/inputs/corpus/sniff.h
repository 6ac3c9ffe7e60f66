/* SPDX-License-Identifier: MIT */
/*
 * sniff.h - judges by its first bytes what a file contains that its name does not tell: one text, records, or binary
 * data.
 *
 * A file of records that is read as one text becomes one document of raw JSON or CSV, without a message. So text that
 * begins like records is refused, and the user says what it is. The rules accept ordinary text, source code, and logs:
 *
 *   JSON    the text begins with an object or with an array of objects, or it is an array whose first value is a
 *           string, or an empty array
 *   CSV     the first line that is not blank is a list of names (short, distinct, beginning with a letter, without
 *           spaces around them), and the rows have as many fields as it has names, in at least 3 rows of 3 names, or
 *           10 rows of 2 names; or one of the names is the wanted field, and one row has as many fields
 *   TSV     the same, but 3 rows are enough also with 2 names
 *   pointer what git leaves in the place of a file that Git LFS has not fetched
 *   page    the beginning of an HTML page; only what a web server sends under another name is refused for it
 *   binary  a zero byte
 *
 * An object begins with a brace and then, also on later lines, one of
 *
 *   a name in quotes, single or double, on one line, and a colon
 *   a word or number, a colon, and the first byte of a string, a number, an object, or an array
 *   the closing brace, and after it the end of the file, a comma, a bracket, or another object
 *
 * whatever follows: it need not be strict JSON. Control characters, blanks, byte order marks, and comments (from # or
 * // to the end of the line, or between slashes and stars) before it are passed over, and so are comments after the
 * brace. So {% block %}, {{name}}, {\bf text}, { "a", "b" }, {name}: and [link] are text, and what Python's repr() and
 * json.dump(), JSON5, and a file that has been cut off consist of are records.
 */
#ifndef TOKMAP_CORPUS_SNIFF_H
#define TOKMAP_CORPUS_SNIFF_H

#include <stdbool.h>
#include <stdint.h>

#define SNIFF_BYTES 8192 /* bytes of a file that are judged */

enum sniff_kind {
    SNIFF_TEXT,
    SNIFF_JSONL,   /* an object that ends, or is not valid, in its first line; or that line is longer than the bytes */
    SNIFF_OBJECT,  /* any other object, or several in a line */
    SNIFF_ARRAY,   /* an array of objects, or an empty one */
    SNIFF_STRINGS, /* an array that begins with a string, which no format of records reads */
    SNIFF_CSV,
    SNIFF_TSV,
    SNIFF_POINTER,
    SNIFF_PAGE,
    SNIFF_BINARY
};

/* Returns true if more bytes than these, the first of a file, are needed to see whether it begins with an object or an
 * array. Any thread. */
bool sniff_needs_more(const char *bytes, uint64_t count);

/* Judges the first `count` bytes of a file; whole: they are all of it. field: the wanted field of records. Any thread.
 */
enum sniff_kind sniff(const char *bytes, uint64_t count, bool whole, const char *field);

#endif
