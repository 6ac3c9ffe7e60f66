/* SPDX-License-Identifier: MIT */
/*
 * record_scan.h - finds where the records of a file end: lines of JSONL, elements of a JSON array, JSON values one
 * after another, rows of CSV or TSV, texts between separators, and records of WARC (by warc_scan.h).
 *
 * The scanner only finds borders; it does not check that a record is valid. It can stop and continue at any byte, and
 * its state is a small value. So the reader, which is sequential, cuts a file of any size between records without
 * keeping more than one of them. Each part of the file carries the state at its first byte, with which the threads that
 * make documents scan the part again.
 *
 * A *segment* is what the scanner takes at a time: a record with what separates it from the next one (a newline, a
 * comma, or the bracket that ends the array), or bytes that are not part of any record (RECORD_BLANK).
 */
#ifndef TOKMAP_CORPUS_RECORD_SCAN_H
#define TOKMAP_CORPUS_RECORD_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "warc_scan.h"

/* The format of an input. CORPUS_AUTO: the name decides, else the content (see corpus.h). All but CORPUS_AUTO and
 * CORPUS_TEXT have records; this scanner is for those that are texts, which CORPUS_PARQUET is not. CORPUS_SEPARATED is
 * what CORPUS_TEXT becomes with corpus_options.separator; users do not name it. */
enum corpus_format {
    CORPUS_AUTO,
    CORPUS_TEXT,
    CORPUS_JSONL,
    CORPUS_JSON,
    CORPUS_CSV,
    CORPUS_TSV,
    CORPUS_PARQUET,
    CORPUS_WARC,
    CORPUS_SEPARATED,
    CORPUS_FORMATS /* numbers */
};

enum record_state {
    RECORD_BEGIN,       /* JSON: nothing has been seen; CSV: a record begins. JSONL has no other state */
    RECORD_ARRAY_FIRST, /* JSON: after the bracket that opens the array */
    RECORD_ARRAY,       /* JSON: after a comma of the array */
    RECORD_AFTER,       /* JSON: after the bracket that closes the array */
    RECORD_SEQUENCE,    /* JSON: values follow one another without an array */
    RECORD_FIELD_BEGIN, /* CSV: a field begins that is not the first one */
    RECORD_FIELD,       /* CSV: in a field without quotes, or after its closing quote */
    RECORD_QUOTED,      /* CSV: in a field with quotes */
    RECORD_QUOTE,       /* CSV: after a quote in a field with quotes */
    RECORD_RETURN       /* CSV: after a carriage return outside of quotes */
};

struct record_scan {
    enum corpus_format format; /* one that has records */
    enum record_state state;
    bool filled;         /* the segment has a byte that is not blank */
    bool string, escape; /* JSON: inside a string; after a backslash in it */
    bool loose;          /* JSON: the value of a sequence does not begin with a bracket; it ends with its line */
    uint64_t depth;  /* JSON: objects and arrays of the record that are open; CORPUS_SEPARATED: bytes of the segment */
    uint64_t record; /* number of the next record, from 0 */
    const char *separator; /* CORPUS_SEPARATED: what separates texts, separator_bytes; valid as long as the scan */
    uint32_t separator_bytes, matched; /* bytes of the separator that the last bytes are */
    struct warc_scan warc;             /* CORPUS_WARC has this state and no other */
};

enum record_kind {
    RECORD_UNFINISHED, /* the segment does not end in these bytes */
    RECORD_WHOLE,      /* it contains a record */
    RECORD_BLANK /* it contains no record: a blank line, the bracket of an array, an empty array, filler of WARC */
};

/* Begins at the first byte of a file. Any thread, as everything here. */
void record_scan_begin(struct record_scan *scan, enum corpus_format format);

/* Begins at the first byte of a file of texts between separators: 1 to RECORD_SEPARATOR_MOST bytes. A segment is a text
 * with the separator that ends it; a separator directly after another one, or at the start, is RECORD_BLANK. */
#define RECORD_SEPARATOR_MOST 256
void record_scan_begin_separated(struct record_scan *scan, const char *separator, uint64_t separator_bytes);

/* Takes the bytes up to the end of a segment, or all of them if it does not end in them, and returns how many it has
 * taken, which may be 0 only for a segment of WARC that began in an earlier call. Sets *kind. A call with more bytes of
 * the file continues. */
uint64_t record_scan_take(struct record_scan *scan, const char *bytes, uint64_t count, enum record_kind *kind);

/* ',' for CSV and a tab for TSV. */
char record_scan_separator(enum corpus_format format);

/* Returns the number of newlines. */
uint64_t record_scan_lines(const char *bytes, uint64_t count);

#endif
