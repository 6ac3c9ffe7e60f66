/*
 * corpus.h - bytes in, documents out.
 *
 * Work is cut into batches. corpus_next() fills one with raw bytes: it reads, decompresses, finds out formats and cuts
 * between lines or characters, and is called by one thread at a time, whichever. corpus_prepare() makes documents of
 * these bytes: it takes JSON apart and checks UTF-8, and runs in any number of threads, each with a batch of its own.
 * How the bytes fall into batches never shows in the documents.
 *
 * Accounts: every byte of the streams (after decompression) is in exactly one of document, structure and skipped bytes.
 */
#ifndef TOKMAP_CORPUS_CORPUS_H
#define TOKMAP_CORPUS_CORPUS_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

enum corpus_format { CORPUS_AUTO, CORPUS_TEXT, CORPUS_JSONL };
enum corpus_invalid { CORPUS_INVALID_ERROR, CORPUS_INVALID_REPLACE, CORPUS_INVALID_SKIP };

struct corpus_options {
    enum corpus_format format;   /* AUTO: by the name, without .gz or .zst: .jsonl, .ndjson, .jsonlines and .json-lines
                                    are JSONL; where the name says nothing (standard input, .json), JSONL if the first
                                    line is a JSON object; else text */
    enum corpus_invalid invalid; /* what becomes of a document that is not valid UTF-8 */
    const char *field;           /* of a JSONL record, that holds the document */
    bool skip;                   /* wrong files and records are left out and listed, instead of ending the work */
    bool cut_anywhere;           /* text documents may be handed out in parts: cut between any two characters, ... */
    uint64_t (*cut)(void *cut_user, const char *bytes, uint64_t count); /* ... or NULL, or where this says, 0: nowhere */
    void *cut_user;
    uint64_t batch_bytes;        /* of a usual batch */
    uint64_t record_limit;       /* longest line of JSONL */
    uint64_t document_limit;     /* longest text document that has to be held whole */
    bool (*stop)(void *user);    /* asked while waiting for a pipe; may be NULL */
    void (*before_large)(void *user); /* called before a batch outgrows batch_bytes by far; may be NULL */
    void *user;
};

/* Bytes of one file in a batch: whole lines of JSONL, or a text document or part of one. Only the first part of a batch
 * is resumed, only the last unfinished. */
struct corpus_part {
    const char *path;    /* of the file, as the input was named; lives as long as the batch is not filled again */
    uint64_t begin, end; /* in the batch's bytes */
    uint64_t offset;     /* of `begin` in the stream */
    uint64_t record;     /* number of the first line, from 0; text: 0 */
    bool jsonl;
    bool resumed;    /* the document began in an earlier part */
    bool unfinished; /* it goes on in a later part */
};

struct corpus_document {
    const char *text;
    uint64_t bytes;
    uint64_t source_bytes; /* that these were in the stream */
    uint64_t record;
    uint32_t part;
    bool resumed, unfinished;
};

enum corpus_issue_kind {
    CORPUS_ISSUE_FILE,     /* a file, or the rest of one, cannot be read; `error` says why */
    CORPUS_ISSUE_JSON,     /* a line is not what it must be; `reason` */
    CORPUS_ISSUE_LIMIT,    /* a line or document is over the limit */
    CORPUS_ISSUE_ENCODING, /* a document is not valid UTF-8 */
};

/* Something that was left out, or that ends the work. */
struct corpus_issue {
    enum corpus_issue_kind kind;
    const char *reason;         /* static */
    const char *path;           /* lives as the parts' paths do */
    struct tokmap_error *error; /* of CORPUS_ISSUE_FILE */
    uint64_t record;            /* or UINT64_MAX: the whole file */
    uint64_t offset;            /* in the stream, or TOKMAP_NO_OFFSET */
    uint64_t bytes;             /* of the stream that are skipped with it */
    uint64_t limit;
    uint32_t part; /* of the batch, that it is in or stands before */
    bool jsonl;
    bool fatal; /* ends the work whatever the options: part of it has been packed */
};

/* What a batch adds up to; the packer sums these. */
struct corpus_counts {
    uint64_t files;         /* that were opened and read to their end */
    uint64_t files_skipped; /* left out whole or in part */
    uint64_t stored_bytes;  /* read of the files as they are stored */
    uint64_t stream_bytes;  /* after decompression; counted where they come in */
    uint64_t documents;
    uint64_t records_skipped;
    uint64_t blank_lines;
    uint64_t empty_documents;
    uint64_t replaced;        /* sequences that became U+FFFD */
    uint64_t document_bytes;  /* of the stream, that became documents */
    uint64_t structure_bytes; /* the rest of their records, line ends, blank lines, a byte order mark */
    uint64_t skipped_bytes;
    uint64_t text_bytes; /* of the documents, after escapes and replacement */
};
void corpus_counts_add(struct corpus_counts *sum, const struct corpus_counts *more);

/* One thread at a time. Filled by corpus_next, then by corpus_prepare. */
struct corpus_batch {
    char *bytes;
    uint64_t capacity, filled;
    uint64_t usual; /* capacity that is kept for the next filling */
    struct corpus_part *parts;
    uint32_t part_count, part_capacity;
    struct corpus_document *documents;
    uint64_t document_count, document_capacity;
    struct corpus_issue *issues;
    uint64_t issue_count, issue_capacity;
    char **replaced; /* texts that took more room than their source */
    uint64_t replaced_count, replaced_capacity;
    char **paths; /* that parts and issues point to */
    uint32_t path_count, path_capacity;
    struct corpus_counts counts;
    uint64_t progress; /* stored bytes of all files up to here */
    bool pause;        /* a pipe has no more yet: what is here should go on its way */
};
void corpus_batch_free(struct corpus_batch *batch);    /* what it holds */
void corpus_batch_release(struct corpus_batch *batch); /* likewise, if that is much more than usual */

struct corpus;

/* operands: as inputs.h takes them; they and *options are copied as far as pointers go.
 * Statuses: OK, ERROR_MEMORY. */
enum tokmap_status corpus_open(struct corpus **corpus, const char *const *operands, size_t count,
                               const struct corpus_options *options, struct tokmap_error *error);
void corpus_close(struct corpus *corpus); /* accepts NULL */

/* Files that must not be read: the outputs. Statuses: OK, ERROR_LIMIT (more than 8). */
enum tokmap_status corpus_exclude(struct corpus *corpus, const char *path, struct tokmap_error *error);

/* Fills a batch, reusing its memory. What is wrong with an input is an issue of the batch, so that it is met in order;
 * unless `skip`, it is the last thing that the corpus gives.
 * Statuses: OK, END (nothing in it), ERROR_INTERRUPTED, ERROR_MEMORY. */
enum tokmap_status corpus_next(struct corpus *corpus, struct corpus_batch *batch, struct tokmap_error *error);

/* Makes documents, and puts the batch's issues in the order of the input. Unless `skip`, it ends at the first issue.
 * Statuses: OK, ERROR_MEMORY. */
enum tokmap_status corpus_prepare(const struct corpus_options *options, struct corpus_batch *batch,
                                  struct tokmap_error *error);

/* The issue as an error: status, path, line, offset, a sentence. */
enum tokmap_status corpus_issue_error(const struct corpus_issue *issue, const struct corpus_options *options,
                                      struct tokmap_error *error);

/* Puts to an error that a document was met with where the document came from. */
void corpus_error_place(const struct corpus_batch *batch, uint64_t document, struct tokmap_error *error);

/* Bytes that the files of these operands are stored in, for progress; 0 if a stream is among them. */
uint64_t corpus_size(const char *const *operands, size_t count);

#endif
