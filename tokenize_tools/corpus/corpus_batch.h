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

#include "tokmap/tokmap.h"

/* Consecutive bytes of one file in a batch: whole lines of JSONL, or one text document or a part of it. Only the first
 * part of a batch can be resumed, and only the last part can be unfinished. */
struct corpus_part {
    const char *path;    /* of the file, as the input was named; valid until the batch is filled again or freed */
    uint64_t begin, end; /* the part is bytes [begin, end) of batch->bytes */
    uint64_t offset;     /* of `begin` in the stream, which is the file after decompression */
    uint64_t record;     /* JSONL: number of the first line, counted from 0; text: 0 */
    bool jsonl;
    bool resumed;    /* the document began in an earlier part */
    bool unfinished; /* the document continues in a later part */
};

/* One document, or one part of a text document. */
struct corpus_document {
    const char *text;      /* valid UTF-8, not terminated; valid until the batch is filled again or freed */
    uint64_t bytes;        /* of `text` */
    uint64_t source_bytes; /* bytes of the stream that the text was made from */
    uint64_t record;       /* as in corpus_part, of this document's line */
    uint32_t part;         /* index in batch->parts */
    bool resumed, unfinished;
};

enum corpus_issue_kind {
    CORPUS_ISSUE_FILE,     /* a file, or the rest of one, cannot be read: `error` has the reason */
    CORPUS_ISSUE_JSON,     /* a line is not a JSON object with the field: `reason` */
    CORPUS_ISSUE_LIMIT,    /* a line or document is larger than `limit`: `reason` */
    CORPUS_ISSUE_ENCODING, /* a document is not valid UTF-8: `reason`, which may be "" */
};

/* Input that is left out, or that ends the work. */
struct corpus_issue {
    enum corpus_issue_kind kind;
    const char *reason;         /* static text */
    const char *path;           /* valid as long as those of the parts */
    struct tokmap_error *error; /* for CORPUS_ISSUE_FILE, owned by the batch; else NULL */
    uint64_t record;            /* number of the line, or UINT64_MAX if the issue concerns the whole file */
    uint64_t offset;            /* in the stream, or TOKMAP_NO_OFFSET */
    uint64_t bytes;             /* bytes of the stream that are skipped because of the issue */
    uint64_t limit;             /* in bytes, for CORPUS_ISSUE_LIMIT */
    uint32_t part;              /* the issue is inside this part of the batch, or precedes it */
    bool jsonl;
    bool fatal; /* ends the work even if issues are skipped, because a part of the document is packed already */
};

/* Totals of one batch. Packing and training add up those of all batches. */
struct corpus_counts {
    uint64_t files;           /* files that were opened and read to the end */
    uint64_t files_skipped;   /* files that were left out entirely or in part */
    uint64_t stored_bytes;    /* bytes read from files, before decompression */
    uint64_t stream_bytes;    /* bytes read, after decompression */
    uint64_t documents;       /* whole documents: a document in parts counts with its last part */
    uint64_t records_skipped; /* lines and documents that were left out */
    uint64_t blank_lines;
    uint64_t empty_documents;
    uint64_t replaced;        /* invalid sequences that became U+FFFD */
    uint64_t document_bytes;  /* bytes of the stream that became documents */
    uint64_t structure_bytes; /* the rest of their records, ends of lines, blank lines, a byte order mark */
    uint64_t skipped_bytes;   /* bytes of the stream that were left out */
    uint64_t text_bytes;      /* bytes of the documents, after escapes and replacements */
};

/* Adds every field of *more to the same field of *sum. */
void corpus_counts_add(struct corpus_counts *sum, const struct corpus_counts *more);

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
    char **paths; /* parts and issues point to these */
    uint32_t path_count, path_capacity;
    struct corpus_counts counts;
    uint64_t progress; /* stored bytes of all files, up to the end of this batch */
    bool pause; /* a pipe has no more bytes at the moment: the batch should be processed without waiting for more */
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

/* Each of these three appends a zeroed element to its list and returns it, or returns NULL if there is not enough
 * memory. An issue begins as one of a whole file (no record, no offset) that precedes the next part. The pointer is
 * valid until the list grows. */
struct corpus_part *corpus_batch_add_part(struct corpus_batch *batch);
struct corpus_document *corpus_batch_add_document(struct corpus_batch *batch);
struct corpus_issue *corpus_batch_add_issue(struct corpus_batch *batch);

/* Returns memory for a text of `bytes` bytes, valid until the batch is cleared; NULL if there is not enough memory. */
char *corpus_batch_add_text(struct corpus_batch *batch, uint64_t bytes);

/* Returns a copy of the path, or NULL if there is not enough memory. It is valid until the batch is cleared. */
const char *corpus_batch_add_path(struct corpus_batch *batch, const char *path);

#endif
