/* SPDX-License-Identifier: MIT */
/*
 * corpus_options.h - what is read from the inputs, and how: the options of corpus.h and records.h.
 */
#ifndef TOKMAP_CORPUS_CORPUS_OPTIONS_H
#define TOKMAP_CORPUS_CORPUS_OPTIONS_H

#include "corpus_batch.h"
#include "inputs.h"

/*
 * CORPUS_AUTO decides by the name (name_kind.h): NAME_JSONL is JSONL. NAME_MIXED and NAME_JSON are JSONL if their first
 * line that is not blank is a JSON object, and JSON if they begin with an array of objects. A file that begins with a
 * line such as WARC/1.0 is CORPUS_WARC. A regular file is CORPUS_PARQUET if its name ends in .parquet, or if it begins
 * and ends with PAR1. All other files are text. But if format_choice.h judges that such a text consists of records or
 * is binary, or if its name is neither NAME_TEXT nor NAME_MIXED, it is an issue: the user has to name the format.
 *
 * CORPUS_JSON: an array of objects, or objects one after another, on any number of lines. CORPUS_CSV and CORPUS_TSV:
 * the first line names the columns.
 */

#define CORPUS_IGNORED (-100) /* the label of an id that does not count, as in torch and transformers */

/* Content of a record, in the fields that the options name. */
enum corpus_content {
    CORPUS_CONTENT_TEXT,     /* field: a text. The only content of input without fields */
    CORPUS_CONTENT_IDS,      /* field: a list of token ids. second_field, or NULL: a list that says which ids count */
    CORPUS_CONTENT_PROMPT,   /* field: the text of a prompt. second_field: the text of its completion */
    CORPUS_CONTENT_MESSAGES, /* field: the list of the messages of a conversation */
};

/* Treatment of a document that is not valid UTF-8. REPLACE: each maximal invalid sequence becomes U+FFFD. */
enum corpus_invalid { CORPUS_INVALID_ERROR, CORPUS_INVALID_REPLACE, CORPUS_INVALID_SKIP };

/* A usual batch of rows of a Parquet file has as much text as this many other batches: about one page, of which most
 * have 1 MiB, so that threads seldom wait for another one that decodes the page that they share. A page that is at most
 * half larger is not divided. */
#define CORPUS_PARQUET_BATCH 4
#define CORPUS_PARQUET_BATCH_MOST (CORPUS_PARQUET_BATCH + CORPUS_PARQUET_BATCH / 2)

/* Keeps what was read of the footer of a Parquet file of a URL, of which other processes read other parts: keep()
 * stores it, or finds it if *footer is empty. */
struct corpus_footers {
    void (*keep)(const char *name, const char *path, struct bytes_buffer *footer);
    const char *name; /* of the output */
};

/* Options, which do not depend on each other. */
struct corpus_options {
    enum corpus_format format;
    enum corpus_invalid invalid;
    struct inputs_selection select; /* selection of files */
    enum corpus_content content;    /* content of a record; text by default */

    /* Fields of a record. A name reaches into objects with dots ("meta.url"), but a field whose own name has the dots
     * is preferred. second_field is NULL unless `content` needs one. */
    const char *field, *second_field;
    bool labels; /* with ids: second_field has labels, which are the ids, or CORPUS_IGNORED where none counts */
    const char *const *columns; /* column_count fields whose values are kept with each document */
    size_t column_count;
    /* For CORPUS_CONTENT_MESSAGES: beside_count fields that say something to whom the messages are for. */
    const char *const *beside;
    size_t beside_count;
    const char *empty; /* the last name of such a field that also says something if it is empty but not null, or NULL */
    uint64_t vocabulary; /* token ids of the input must be below it; 0: below 2^32 */

    /* Separator of the documents of a text file: separator_bytes bytes, 1 to RECORD_SEPARATOR_MOST. Each document is
     * what is between two of them, or before the first or after the last one, if it is not empty. NULL: a text file is
     * one document. Documents in such a file come whole, and record_limit applies to them. */
    const char *separator;
    uint64_t separator_bytes;

    bool skip; /* bad files and records are left out and listed as issues, instead of ending the work */

    /* If cut_anywhere is set, a text document may be delivered in parts. cut() then returns after how many of the first
     * `count` bytes of a text a part may end, or 0 if nowhere; if cut is NULL, parts end between any two characters. */
    bool cut_anywhere;
    uint64_t (*cut)(void *cut_user, const char *bytes, uint64_t count);
    void *cut_user;

    uint64_t batch_bytes;    /* size of a usual batch, in bytes; less than 8 KiB counts as 8 KiB */
    uint64_t record_limit;   /* length of the longest accepted record, in bytes */
    uint64_t document_limit; /* size of the largest text document that has to be held in memory whole, in bytes */

    /* Only a part of the first input is read: see corpus_range.h. end 0: all of it. Of a plain file of JSONL, these are
     * bytes [begin, end), which are whole lines, and corpus_range_begin() begins there. Of a Parquet file, these are
     * row groups [begin, end), and `groups` is the hash of the file's row groups (parquet.h), which is 0 of lines.
     */
    struct corpus_range {
        uint64_t begin, end, groups;
    } range;
    const struct corpus_footers *footers; /* or NULL: none is kept */

    uint32_t feeder; /* the process of which standard input is a feed (byte_source.h), or 0 */
    uint64_t feed;   /* number by which a feed is known that can be repeated, or 0 */

    /* Called, from any thread, for a file in which the separator does not occur. other: the separator with the other
     * line ends (CRLF for newlines, or newlines for CRLF), if that does occur; else NULL. NULL: not called. */
    void (*undivided)(void *undivided_user, const char *path, const char *other, uint64_t other_bytes);
    void *undivided_user;

    bool (*stop)(void *user);         /* called while a pipe has no bytes: true ends the wait; may be NULL */
    void (*before_large)(void *user); /* called before a batch grows above 4 * batch_bytes; may be NULL */
    void *user;
};

#define RECORD_COLUMNS_MOST 64 /* fields that can be kept */
#define RECORD_BESIDE_MOST 128 /* fields beside messages */
#define RECORD_FIELDS_MOST (2 + RECORD_COLUMNS_MOST + RECORD_BESIDE_MOST)

/* Returns the fields that the options name, in order: field, second_field if there is one, the columns, and those
 * beside the messages. Returns how many. */
size_t record_fields(const struct corpus_options *options, const char *names[RECORD_FIELDS_MOST]);

#endif
