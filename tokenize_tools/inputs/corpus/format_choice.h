/* SPDX-License-Identifier: MIT */
/*
 * format_choice.h - decides the format of an input by its name and its first bytes, for CORPUS_AUTO. corpus.h states
 * the rules.
 */
#ifndef TOKMAP_CORPUS_FORMAT_CHOICE_H
#define TOKMAP_CORPUS_FORMAT_CHOICE_H

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

#endif
