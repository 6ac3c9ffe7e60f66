/*
 * corpus.h - reads the inputs of a command and cuts them into batches of raw bytes.
 *
 * Bytes become documents in two stages:
 *
 *     files -> corpus_next() -> batch of raw bytes -> records_to_documents() -> batch of documents
 *
 * corpus_next() opens files, decompresses, detects formats, and cuts between records or characters. It is sequential:
 * any thread may call it, but only one at a time. records_to_documents() (records.h) parses records and checks UTF-8.
 * It needs nothing but its batch, so any number of threads run it at once, each with its own batch. The documents do
 * not depend on where one batch ends and the next begins.
 *
 * Accounts: each byte of the streams (files after decompression) is counted exactly once, as a byte of a document, of
 * structure, or of skipped input (struct corpus_counts).
 *
 * A Parquet file is its own stream: stream_bytes and stored_bytes are both the size of the file, once it was read to its
 * end or the rest was left out. Its columns are compressed page by page, so a row has no bytes of its own: the bytes of
 * a data page of the first column (the text, the ids, or the first field of the messages) are divided evenly among the
 * rows in it, as parquet_source.h defines, and a row's share becomes document bytes or skipped bytes. All other bytes are
 * structure: headers, dictionaries, other columns, the footer. text_bytes counts the decoded texts as always. A page
 * that cannot be decoded is one issue for all of its rows (corpus_issue.records); what is wrong with the footer or with
 * the header of a page leaves out the rest of the file.
 */
#ifndef TOKMAP_CORPUS_CORPUS_H
#define TOKMAP_CORPUS_CORPUS_H

#include "corpus_batch.h"
#include "inputs.h"

/*
 * CORPUS_AUTO decides by the name, without .gz or .zst: names that end in .jsonl, .ndjson, .jsonlines or .json-lines
 * are JSONL. Standard input, files in /dev/ and names that end in .json are JSONL if their first line is a JSON object,
 * and JSON if they begin with an array of objects. All other files are text. But if sniff.h judges that such a text
 * consists of records or is binary, or if its name ends in .csv or .tsv, it is an issue: the user has to name the
 * format. A regular file is CORPUS_PARQUET if its name ends in .parquet, or if it begins and ends with PAR1.
 *
 * CORPUS_JSON: an array of objects, or objects one after another, on any number of lines. CORPUS_CSV and CORPUS_TSV:
 * the first line names the columns.
 */

/* What a record holds, in the fields that the options name. */
enum corpus_content {
    CORPUS_CONTENT_TEXT,     /* field: a text. The only content of input without fields */
    CORPUS_CONTENT_IDS,      /* field: a list of token ids. second_field, or NULL: a list that says which ids count */
    CORPUS_CONTENT_PROMPT,   /* field: the text of a prompt. second_field: the text of its completion */
    CORPUS_CONTENT_MESSAGES, /* field: the list of the messages of a conversation */
};

/* What happens to a document that is not valid UTF-8. REPLACE: each maximal invalid sequence becomes U+FFFD. */
enum corpus_invalid { CORPUS_INVALID_ERROR, CORPUS_INVALID_REPLACE, CORPUS_INVALID_SKIP };

struct corpus_options {
    enum corpus_format format;
    enum corpus_invalid invalid;
    struct inputs_selection select; /* which files are read */
    enum corpus_content content;    /* what a record holds; text by default */

    /* Fields of a record. A name reaches into objects with dots ("meta.url"), but a field whose own name has the dots
     * is preferred. second_field is NULL unless `content` needs one. */
    const char *field, *second_field;
    const char *const *columns; /* column_count fields whose values are kept with each document */
    size_t column_count;
    uint64_t vocabulary; /* token ids of the input must be below it; 0: below 2^32 */

    /* What separates the documents of a text file: separator_bytes bytes, 1 to RECORD_SEPARATOR_MOST. Each document is
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

    bool (*stop)(void *user);         /* called while a pipe has no bytes: true ends the wait; may be NULL */
    void (*before_large)(void *user); /* called before a batch grows above 4 * batch_bytes; may be NULL */
    void *user;
};

struct corpus;

/* Opens a corpus. operands: files, folders and patterns, as inputs.h describes. The operands and all that the options
 * point to must stay valid until corpus_close(). No file is opened yet: errors of inputs appear as issues of batches.
 * Statuses: OK, ERROR_MEMORY. */
enum tokmap_status corpus_open(struct corpus **corpus, const char *const *operands, size_t count,
                               const struct corpus_options *options, struct tokmap_error *error);

/* Closes the corpus and its open file. Accepts NULL. Batches stay valid. */
void corpus_close(struct corpus *corpus);

/* Excludes a file, because it is an output of the command: an input that is the same file becomes an issue. A path that
 * does not exist is ignored. Statuses: OK, ERROR_LIMIT (more than 8 files). */
enum tokmap_status corpus_exclude(struct corpus *corpus, const char *path, struct tokmap_error *error);

/* Clears the batch and fills it with the next bytes. Errors of an input are issues of the batch, so that they are
 * reported in the order of the input; unless options.skip is set, the batch with the first issue is the last one.
 * Statuses: OK, END (no input is left, the batch is empty), ERROR_INTERRUPTED (options.stop returned true),
 * ERROR_MEMORY. */
enum tokmap_status corpus_next(struct corpus *corpus, struct corpus_batch *batch, struct tokmap_error *error);

/* Returns the total size of the files of a corpus as they are stored, in bytes, for a progress display. Returns 0 if
 * one of them is a pipe or a device, or if a list of paths is not a regular file, since it can be read only once.
 * Standard input and files that cannot be examined are not counted. stop(user) ends the search for the files, and the
 * result is then 0; it may be NULL. */
uint64_t corpus_size(const char *const *operands, size_t count, const struct inputs_selection *select,
                     bool (*stop)(void *user), void *user);

#endif
