/* SPDX-License-Identifier: MIT */
/*
 * format_choice.h - decides the format of an input by its name and its first bytes, for CORPUS_AUTO. corpus.h states
 * the rules.
 */
#ifndef TOKMAP_CORPUS_FORMAT_CHOICE_H
#define TOKMAP_CORPUS_FORMAT_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "corpus_options.h"
#include "warc_scan.h"

/* JUDGED_MORE: more bytes of the file are needed. JUDGED_WRONG: the file is left out. */
enum judged { JUDGED, JUDGED_MORE, JUDGED_WRONG };

/* Reasons to leave out a file because of its first bytes. */
struct judgment {
    enum corpus_reason reason;
    struct tokmap_error why;
};

/* Progress of earlier calls that looked for the end of the first line. Zeros at the beginning of a file. Without this,
 * a long first line that comes in small reads would be searched from its beginning for each of them. */
struct first_line {
    uint64_t blank;    /* bytes at the beginning that are a byte order mark or blank */
    uint64_t searched; /* bytes that have no newline after the first one that is not blank */
    uint64_t open;     /* bytes that do not tell whether they begin with a record */
};

/* An input as far as it is known: the first `count` bytes. end: they are all. line: may be NULL. */
struct first_bytes {
    const char *path, *bytes;
    uint64_t count;
    bool end;
    const struct corpus_options *options;
    struct first_line *line;
};

/* Returns CORPUS_JSONL if the name says that the file consists of lines of JSON, CORPUS_PARQUET if it ends in .parquet,
 * otherwise CORPUS_AUTO. */
enum corpus_format format_of_name(const char *path);

/* Sets *format to the format of a file for which format_of_name() returned CORPUS_AUTO. Messages name fields of struct
 * corpus_options. Any thread. */
enum judged format_choose(const struct first_bytes *first, enum corpus_format *format, struct judgment *judgment);

/* Finds the columns of the options' fields in the header of a table, which is `first` as a whole; `line` and `offset`
 * are its place in the file. Sets *columns to the number of columns, and places[i] to the index of the column of the
 * field i of record_fields(), or to UINT64_MAX for a field of options->columns or options->beside that the header
 * lacks. */
enum judged header_read(const struct first_bytes *first, enum corpus_format format, uint64_t line, uint64_t offset,
                        uint64_t *columns, uint64_t *places, struct judgment *judgment);

/* Refuses a WARC file, which has texts alone, where other content is wanted. */
enum judged warc_has_no_fields(const struct first_bytes *first, struct judgment *judgment);

/* Judges a WARC file that has been read to its end: it must not end inside a record without text (a truncated text
 * is an issue of its own), and if it has records beside its warcinfo, one of them must be text. */
enum judged warc_end_judge(const char *path, const struct warc_scan *scan, struct judgment *judgment);

/* Returns the option that names a field of a record: "--field", or another one if the content is not text. */
const char *field_option(const struct corpus_options *options, const char *field);

/*
 * Judges by its first bytes what a file contains that its name does not tell: one text, records, or binary
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
