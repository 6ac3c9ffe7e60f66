/* SPDX-License-Identifier: MIT */
/*
 * warc_scan.h - finds where the records of a WARC file end (ISO 28500, versions 1.0 and 1.1), for record_scan.h.
 *
 * A record is a header, an empty line, as many bytes of content as its Content-Length says, and an empty line:
 *
 *     WARC/1.0<CRLF>WARC-Type: conversion<CRLF>Content-Length: 5<CRLF><CRLF>Hello<CRLF><CRLF>
 *
 * Only a record of text (a conversion whose Content-Type is text/plain, or that has none) becomes a document, so only
 * such a record is one segment, from its header to the first line end after its content. Of any other record, the
 * segment is the header alone, and the content follows as filler, which ends wherever the bytes do: no memory has to
 * hold it. Line ends between records are filler, too.
 *
 * Where a header cannot say how long its record is, the scanner is *lost*: it takes filler up to the next line that
 * begins with "WARC/1." after an empty line. So one damaged record does not cost the rest of the file.
 *
 * Headers are read as warcio reads them: lines may end with a newline alone, names count without case, lines without a
 * colon have no meaning, and a line that begins with a space or a tab continues the one before.
 */
#ifndef TOKMAP_CORPUS_WARC_SCAN_H
#define TOKMAP_CORPUS_WARC_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#define WARC_HEADER_MOST ((uint64_t)65536) /* bytes of a header, from its version to its empty line */
#define WARC_LINE_KEPT 64                  /* bytes of a header's line that are looked at */

enum warc_class {
    WARC_TEXT,  /* a conversion to text/plain */
    WARC_ABOUT, /* warcinfo, metadata, request: about the file or about other records */
    WARC_OTHER, /* all others: response, resource, revisit, continuation, conversion to something else */
    WARC_WRONG  /* the header has a fault, but says how long the content is */
};

/* Faults of a record, and the words for a message. */
#define WARC_FAULT_MAP(X)                                                                                              \
    X(NONE, "")                                                                                                        \
    X(NOT_A_RECORD, "it does not begin with WARC/1., so the Content-Length before it is wrong, or bytes are damaged")  \
    X(VERSION, "its version is not WARC/1.0 or WARC/1.1")                                                              \
    X(ENDLESS, "its header has no end within 65536 bytes")                                                             \
    X(NO_LENGTH, "its header has no Content-Length")                                                                   \
    X(LENGTH_TWICE, "its header has two Content-Lengths")                                                              \
    X(LENGTH, "its Content-Length is not a whole number below 2^63")                                                   \
    X(NO_TYPE, "its header has no WARC-Type")                                                                          \
    X(TYPE, "its header has two WARC-Types, or one of several lines")                                                  \
    X(SEGMENT, "it is one segment of a longer record, as its WARC-Segment-Number says")                                \
    X(FOLLOWED, "its content is not followed by a line end, so its Content-Length is wrong")                           \
    X(TRUNCATED, "the file ends inside it")
enum warc_fault {
#define WARC_FAULT_ENUM(name, text) WARC_FAULT_##name,
    WARC_FAULT_MAP(WARC_FAULT_ENUM)
#undef WARC_FAULT_ENUM
};

/* Returns the words for a message. Static. */
const char *warc_fault_text(enum warc_fault fault);

enum warc_state {
    WARC_BETWEEN, /* between records, or lost */
    WARC_HEADER,  /* in a header */
    WARC_CONTENT, /* in the content of a record of text */
    WARC_AFTER,   /* after that content, before the line end */
    WARC_OTHERS   /* in the content of another record */
};

/* The state of the scanner, which may be interrupted after any byte: so all that it knows is here. All zeros at the
 * beginning of a file. */
struct warc_scan {
    enum warc_state state;
    bool lost;
    bool inside;         /* lost: a line has begun */
    bool blank;          /* the line has only blanks so far */
    bool after_blank;    /* lost: the line before is empty */
    bool returned;       /* WARC_AFTER: a carriage return was taken */
    bool segmented;      /* the header has a WARC-Segment-Number */
    uint8_t matched;     /* WARC_BETWEEN: bytes of "WARC/1." that the segment has, which are all of it */
    uint8_t field;       /* header: what the last line named, for lines that continue it */
    uint32_t line_bytes; /* header: of the line, of which `line` has the first ones */
    uint32_t lines;      /* header: complete lines */
    char line[WARC_LINE_KEPT];
    bool has_length, has_type, is_text;
    bool is_info; /* a warcinfo */
    /* The record that was scanned last; valid until the next segment begins. */
    enum warc_class class;
    enum warc_fault fault;
    uint64_t header_bytes;
    uint64_t length, left; /* of the content: all bytes, and those that have not been taken */
    /* The file so far: */
    uint64_t texts, others; /* records of text; all other valid ones but warcinfo */
};

/* Kinds of the bytes that were taken: a part of a segment, the rest of a record's segment, or filler. */
enum warc_end { WARC_OPEN, WARC_RECORD, WARC_FILLER };

/* Takes the bytes up to the end of a segment, or all if it does not end in them. Returns how many it has taken, which
 * may be 0 when a segment that began in earlier bytes ends before these. Any thread. */
uint64_t warc_scan_take(struct warc_scan *scan, const char *bytes, uint64_t count, enum warc_end *end);

/* A line of a header. */
struct warc_line {
    const char *name, *value; /* in the header */
    uint64_t name_bytes, value_bytes;
    uint64_t next;  /* of the line after it and its continuations */
    bool continued; /* the value has several lines */
};

/* Reads the line at `at` of a header, with the lines that continue it. Returns false at the header's end. A line
 * without a colon has no value, and its name_bytes are 0. Begin with at = 0, which is the line of the version. */
bool warc_line_next(const char *header, uint64_t header_bytes, uint64_t at, struct warc_line *line);

/* Writes the value of a continued line as one: without line ends and the blanks before them. `into` has room for
 * value_bytes. Returns its length. */
uint64_t warc_value_join(char *into, const struct warc_line *line);

/* Compares names of a header, without case. name: terminated. */
bool warc_name_is(const char *text, uint64_t count, const char *name);

#endif
