/* SPDX-License-Identifier: MIT */
/*
 * corpus_batch.h - a batch: raw bytes of the inputs, the documents made from them, and the issues found on the way.
 *
 * corpus_next() (corpus.h) fills `bytes`, `parts` and the issues of files. records_to_documents() (records.h) then
 * fills `documents` and adds the issues of records. A batch that begins as zero bytes is empty. Batches are reused: the
 * lists keep their memory from one filling to the next.
 *
 * Thread rule: one thread at a time per batch. Different batches are independent.
 */
#ifndef TOKMAP_CORPUS_CORPUS_BATCH_H
#define TOKMAP_CORPUS_CORPUS_BATCH_H

#include <stdbool.h>

#include "inputs.h"
#include "record_scan.h"

struct parquet_rows;

/* Consecutive bytes of one file in a batch: whole records, or one text document or a part of it. Only the first part of
 * a batch can be resumed, and only the last part can be unfinished. */
struct corpus_part {
    struct parquet_rows *rows; /* of CORPUS_PARQUET: the part has these instead of bytes, and owns them. Else NULL */
    const char *path;          /* of the file, as the input was named; valid until the batch is filled again or freed */
    uint64_t begin, end;       /* the part is bytes [begin, end) of batch->bytes */
    uint64_t input;            /* number of the file: see struct corpus_document */
    uint64_t offset;           /* of `begin` in the stream, which is the file after decompression */
    uint64_t line;             /* number of the line that contains `begin`, from 1; text: 0 */
    enum corpus_format format;
    struct record_scan scan; /* not for text: the state of the scanner at `begin` */
    uint64_t columns;        /* CSV: number of columns */
    const uint64_t *places;  /* CSV: the index of the column of each field of the options (record_fields()), or
                              * UINT64_MAX if the header lacks it; owned by the batch */
    bool resumed;            /* the document began in an earlier part */
    bool unfinished;         /* the document continues in a later part */
};

/* The value of a field of a record, as JSON text in valid UTF-8, not terminated. 0 bytes: the record lacks it. */
struct corpus_value {
    const char *json;
    uint64_t bytes;
};

/* One document, or one part of a text document. The number of its input and its position identify it, whatever else is
 * packed with it: inputs are numbered from 0 in the order in which they are read, and those that cannot be read count,
 * too, but not those that are outputs of the command. The position is the byte of the stream at which the record begins
 * (its line, its element of an array after the comma before it, its row, the text after a separator, its header of
 * WARC), of Parquet the row, and of text 0. What its pointers point to is valid until the batch is filled again or
 * freed. Only a document whose content is text comes in parts. */
struct corpus_document {
    const char *text;   /* text, prompt, or the JSON text of the messages: valid UTF-8, not terminated. Ids: NULL */
    uint64_t bytes;     /* of `text` */
    const char *second; /* of CORPUS_CONTENT_PROMPT: the completion, like `text`. Of CORPUS_CONTENT_MESSAGES: an object
                         * of JSON with the fields of corpus_options.beside that say something. Else NULL */
    uint64_t second_bytes; /* of `second` */
    const uint32_t *ids;   /* of CORPUS_CONTENT_IDS: id_count ids, each below corpus_options.vocabulary. Else NULL */
    uint64_t id_count;
    const uint8_t *counted;            /* a byte for each of `ids`: 1 if it counts as a target, else 0. NULL: all do */
    const struct corpus_value *values; /* of the fields corpus_options.columns, in their order; NULL without columns */
    uint64_t source_bytes;             /* bytes of the stream that text, second, ids and mask were made from */
    uint64_t record;                   /* number of its record in the file, from 0; of JSONL, lines count; of text, 0 */
    uint64_t line;                     /* number of the line that contains the record, from 1; text: 0 */
    uint64_t position;                 /* place of its record in the file */
    uint32_t part;                     /* index in batch->parts */
    bool resumed, unfinished;
};

enum corpus_issue_kind {
    CORPUS_ISSUE_FILE,     /* a file, or the rest of one, cannot be read: `error` has the reason */
    CORPUS_ISSUE_RECORD,   /* a record is not valid or lacks the field: `reason` */
    CORPUS_ISSUE_LIMIT,    /* a record or document is larger than `limit`: `reason` */
    CORPUS_ISSUE_ENCODING, /* a document is not valid UTF-8: `reason`, which may be "" */
};

/* Reasons why input is left out, in classes that a closing report can list: the name in JSON, and the words for people,
 * which follow a count. */
#define CORPUS_REASON_MAP(X)                                                                                           \
    X(UNREADABLE, "unreadable", "cannot be found, opened, or read")                                                    \
    X(FORMAT, "format", "of a format that is not text: binary, PDF, archives, UTF-16")                                 \
    X(AMBIGUOUS, "ambiguous", "looks like records (JSONL, JSON, CSV) and is not named so")                             \
    X(DAMAGED, "damaged", "truncated, damaged, or changed while it was read")                                          \
    X(EMPTY, "empty", "a pipe or standard input that ended without a byte")                                            \
    X(SYNTAX, "syntax", "not valid JSON, CSV, or WARC")                                                                \
    X(FIELD, "field", "the field is missing, appears twice, or is not a string")                                       \
    X(TOKEN, "token", "a token id is negative, not an integer, or not below the size of the vocabulary")               \
    X(MASK, "mask", "the mask has another length than the ids, or values other than 0 and 1")                          \
    X(TOO_LONG, "too_long", "longer than the limit")                                                                   \
    X(ENCODING, "encoding", "not valid UTF-8")                                                                         \
    X(CHAT, "chat", "a conversation that the chat template cannot write")                                              \
    X(LENGTH, "length", "fewer or more tokens than asked for")                                                         \
    X(NOT_TEXT, "not_text", "WARC records without extracted text: responses, resources, revisits, and others")         \
    X(DUPLICATE, "duplicate", "duplicates of earlier documents")                                                       \
    X(EXCLUDED, "excluded", "with words of the excluded texts")                                                        \
    X(NEAR_DUPLICATE, "near_duplicate", "near-duplicates of earlier documents")                                        \
    X(LISTED, "listed", "named by a list of --drop")
enum corpus_reason {
#define CORPUS_REASON_ENUM(name, word, text) CORPUS_REASON_##name,
    CORPUS_REASON_MAP(CORPUS_REASON_ENUM)
#undef CORPUS_REASON_ENUM
        CORPUS_REASONS /* their number */
};

/* Returns the word for JSON ("too_long"), and the words for people ("longer than the limit"). Both are static. */
const char *corpus_reason_word(enum corpus_reason reason);
const char *corpus_reason_text(enum corpus_reason reason);
/* Returns why a file is left out that cannot be read because of an error. */
enum corpus_reason corpus_reason_of(enum tokmap_status status);

/* Input that is left out, or that ends the work. Flat, because each kind of issue has another choice of its members. */
struct corpus_issue {
    enum corpus_issue_kind kind;
    enum corpus_reason left_out;
    bool is_file;               /* a file, or the rest of one, is left out; otherwise one record of a file */
    const char *reason;         /* static text */
    const char *path;           /* valid as long as those of the parts */
    struct tokmap_error *error; /* for CORPUS_ISSUE_FILE, owned by the batch; else NULL */
    const char *field;          /* the field of a record that it is about: one of the options; or NULL */
    char *detail;               /* more about the reason, or NULL; owned by the batch */
    uint64_t record;            /* number of the record, or UINT64_MAX if the issue concerns the whole file */
    uint64_t records;           /* number of records that are left out from that one on, in a Parquet file; 0: one */
    uint64_t row_group;         /* of that record, in a Parquet file */
    uint64_t line;              /* number of the line, from 1, or 0 */
    uint64_t offset;            /* in the stream, or TOKMAP_NO_OFFSET */
    uint64_t bytes;             /* bytes of the stream that are skipped because of the issue */
    uint64_t limit;             /* in bytes, for CORPUS_ISSUE_LIMIT */
    uint32_t part;              /* the issue is inside this part of the batch, or precedes it */
    enum corpus_format format;
    bool inside; /* it was found in the part; otherwise it precedes it */
    bool asked;  /* the options ask for this: it is not an error, and no limit counts it */
    bool fatal;  /* ends the work even if issues are skipped, because a part of the document is packed already */
};

/* Totals of one batch. Packing and training add up those of all batches. Flat: a list of counters, each of which is a
 * line of the report, and all of the type uint64_t, also those of structs in it. */
struct corpus_counts {
    uint64_t files; /* files that were read to the end and used; every other file is in files_skipped */
    uint64_t files_of[CORPUS_FORMATS]; /* `files`, by format */
    uint64_t files_skipped;            /* files that were left out entirely, or whose rest was */
    uint64_t stored_bytes;             /* bytes read from files, before decompression */
    uint64_t stream_bytes;             /* bytes read, after decompression */
    uint64_t documents;                /* whole documents: a document in parts counts with its last part */
    uint64_t records_skipped;          /* records that were left out; a text file is a file, not a record */
    uint64_t blank_lines;
    uint64_t lines;         /* newlines of the JSONL files, or of ranges of them, that were read to the end */
    uint64_t about_records; /* of WARC: warcinfo, metadata, request. They are structure */
    uint64_t empty_files;   /* files without a byte, among `files` */
    uint64_t empty_documents;
    uint64_t replaced;        /* invalid sequences that became U+FFFD */
    uint64_t not_finite;      /* NaN and Infinity in fields of JSON that are not read */
    uint64_t marks;           /* byte order marks that texts begin with, and keep */
    uint64_t undivided;       /* files of text, among `files`, in which the separator does not occur */
    uint64_t document_bytes;  /* bytes of the stream that became documents */
    uint64_t structure_bytes; /* the rest of their records, ends of lines, blank lines, headers, a byte order mark */
    uint64_t skipped_bytes;   /* bytes of the stream that were left out */
    uint64_t text_bytes;      /* bytes of the documents, after escapes and replacements */
    /* Numbers of items that were left out, by reason. The files are files_skipped in all, the records are
     * records_skipped, and the bytes, which are counted after decompression, are skipped_bytes. */
    struct corpus_left_out {
        uint64_t files, records, bytes;
    } left_out[CORPUS_REASONS];
    struct inputs_counts not_read; /* files and folders that were not opened: hidden, excluded, links */
};

/* Adds every field of *more to the same field of *sum. */
void corpus_counts_add(struct corpus_counts *sum, const struct corpus_counts *more);

/* Adds what has been left out between *before and *now. */
void corpus_counts_not_read(struct inputs_counts *sum, const struct inputs_counts *before,
                            const struct inputs_counts *now);

/* Place of the reader of the inputs at the end of a batch, so that another process continues there (corpus_range.h).
 * Numbers only, in one list, since they are stored in files. */
struct corpus_place {
    uint64_t inputs;       /* number of inputs that were named so far, with the open one */
    uint64_t begun;        /* number of those that have numbers */
    uint64_t done;         /* all of them */
    uint64_t open;         /* the last one is open; if not, the next eleven are 0 */
    uint64_t format;       /* enum corpus_format */
    uint64_t offset;       /* in its stream; of Parquet: runs of rows */
    uint64_t taken;        /* of Parquet: bytes of these rows */
    uint64_t frame_stored; /* of a compressed file: where in the file a frame begins from which `offset` is reached, */
    uint64_t frame_begins; /* and where in its stream. Of Parquet: the row group of the last rows, and `offset`, */
    uint64_t line, record; /* at `offset`; of Parquet, record is `taken`, before that group */
    uint64_t resumed;      /* a text document has begun before `offset` */
    uint64_t carried;      /* bytes after `offset` that the counts of the batches have as read */
    uint64_t version;      /* of a URL: remote_version(), */
    uint64_t stored;       /* and its bytes, as the server says */
    uint64_t finished_stored;
    uint64_t unfit; /* the reader cannot continue here */
};

/* Documents, and all that they point to. Each list has its count and its capacity beside it. */
struct corpus_batch {
    char *bytes;
    uint64_t capacity, filled;
    uint64_t usual; /* the capacity that is kept for the next filling */
    struct corpus_part *parts;
    uint32_t part_count, part_capacity;
    struct corpus_document *documents;
    uint64_t document_count, document_capacity;
    struct corpus_issue *issues;
    uint64_t issue_count, issue_capacity;
    char **replaced; /* texts that are longer than their source */
    uint64_t replaced_count, replaced_capacity;
    struct corpus_block *blocks; /* the memory of corpus_batch_take() */
    char **paths;                /* parts and issues point to these */
    uint32_t path_count, path_capacity;
    struct corpus_counts counts;
    uint64_t progress;         /* stored bytes of all files, up to the end of this batch */
    struct corpus_place place; /* at the end of this batch */
};

/* Frees everything that the batch owns, and empties it. */
void corpus_batch_free(struct corpus_batch *batch);

/* Empties the batch and frees its large memory if it has grown above the usual size or has replaced texts; does nothing
 * to any other batch. */
void corpus_batch_trim(struct corpus_batch *batch);

/* ---- for corpus.c and records.c ---- */

/* Empties the batch. Its memory is kept, except that `bytes` is freed if its capacity is above `usual`. */
void corpus_batch_clear(struct corpus_batch *batch, uint64_t usual);

/* Grows `bytes` to at least this capacity and keeps its content. Returns false if there is not enough memory. */
bool corpus_batch_reserve(struct corpus_batch *batch, uint64_t capacity);

/* Append, each of these three, a zeroed element to its list and returns it, or returns NULL if there is not enough
 * memory. An issue begins as one of a whole file (no record, no offset) that precedes the next part. The pointer is
 * valid until the list grows. */
struct corpus_part *corpus_batch_add_part(struct corpus_batch *batch);
struct corpus_document *corpus_batch_add_document(struct corpus_batch *batch);
struct corpus_issue *corpus_batch_add_issue(struct corpus_batch *batch);

/* Puts issues in the order of the input: the first `count` are in this order, and so are the others among themselves.
 * Returns false if there is not enough memory. */
bool corpus_batch_merge_issues(struct corpus_batch *batch, uint64_t count);

/* Counts a file that was read to its end. */
void corpus_batch_count_file(struct corpus_batch *batch, enum corpus_format format);

/* Counts an issue as left out: by its reason, as a file or a record, with its bytes. The issue must be complete. */
void corpus_batch_count_issue(struct corpus_batch *batch, const struct corpus_issue *issue);

/* Counts a document as left out in place of packed; the caller removes it from the documents. */
void corpus_batch_leave_out(struct corpus_batch *batch, const struct corpus_document *document,
                            enum corpus_reason reason);

/* Returns memory for a text of `bytes` bytes, valid until the batch is cleared; NULL if there is not enough memory. */
char *corpus_batch_add_text(struct corpus_batch *batch, uint64_t bytes);

/* Returns memory for `bytes` bytes, which is aligned for any number and valid until the batch is cleared; NULL if there
 * is not enough memory. A batch keeps this memory for its next filling, up to its usual size. */
void *corpus_batch_take(struct corpus_batch *batch, uint64_t bytes);

/* Gives back the end of the memory that was taken last, `last`: only its first `bytes` bytes are needed. */
void corpus_batch_shorten(struct corpus_batch *batch, void *last, uint64_t bytes);

/* Returns a copy of the path, or NULL if there is not enough memory. It is valid until the batch is cleared. */
const char *corpus_batch_add_path(struct corpus_batch *batch, const char *path);

#endif
