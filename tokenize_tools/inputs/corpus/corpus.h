/* SPDX-License-Identifier: MIT */
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
 * Of a WARC file (warc_scan.h), the document bytes are the contents of its records of text. Records that describe
 * others (warcinfo, metadata, request) are structure, and all others are left out as CORPUS_REASON_NOT_TEXT: they are
 * counted without an issue, since files with texts may have them. But a file without any text is an issue at its end.
 * Bytes from a damaged header to the next record are left out, as CORPUS_REASON_SYNTAX; the bytes are those of
 * the header.
 *
 * A Parquet file is its own stream: stream_bytes and stored_bytes are both the size of the file, once it was read to
 * its end or the rest was left out. Its columns are compressed page by page, so a row has no bytes of its own: the
 * bytes of a data page of the first column (the text, the ids, or the first field of the messages) are divided evenly
 * among the rows in it, as parquet.h defines, and a row's share becomes document bytes or skipped bytes. All
 * other bytes are structure: headers, dictionaries, other columns, the footer. text_bytes counts the decoded texts as
 * always. A page that cannot be decoded is one issue for all of its rows (corpus_issue.records); what is wrong with
 * the footer or with the header of a page leaves out the rest of the file. Of a file that is cut (parquet.h), all
 * of this is about the bytes and the row groups of the part.
 */
#ifndef TOKMAP_CORPUS_CORPUS_H
#define TOKMAP_CORPUS_CORPUS_H

#include "corpus_options.h"
#include "excluded_files.h"

struct corpus;

/* Opens a corpus. operands: files, folders and patterns, as inputs.h describes. The operands and all that the options
 * point to must stay valid until corpus_close(). No file is opened yet: errors of inputs appear as issues of batches.
 * Statuses: OK, ERROR_MEMORY. */
enum tokmap_status corpus_open(struct corpus **corpus, const char *const *operands, size_t count,
                               const struct corpus_options *options, struct tokmap_error *error);

/* Closes the corpus and its open file. Accepts NULL. Batches stay valid. */
void corpus_close(struct corpus *corpus);

/* Excludes a file, because it is an output of the command: an input that is the same file becomes an issue. A folder
 * excludes the files in it, not those in folders below it. A path that does not exist is ignored. Statuses: OK,
 * ERROR_LIMIT (more than 16 paths). */
enum tokmap_status corpus_exclude(struct corpus *corpus, const char *path, struct tokmap_error *error);

/* Excludes all files of which kind_of(user, path) says so, in the same way. Both must stay valid. */
void corpus_exclude_kinds(struct corpus *corpus, enum excluded_kind (*kind_of)(const void *user, const char *path),
                          const void *user);

/* Clears the batch and fills it with the next bytes. Errors of an input are issues of the batch, so that they are
 * reported in the order of the input; unless options.skip is set, the batch with the first issue is the last one.
 * Statuses: OK, END (no input is left, the batch is empty), ERROR_INTERRUPTED (options.stop returned true),
 * ERROR_MEMORY, and with options.feeder those of stream_read(). */
enum tokmap_status corpus_next(struct corpus *corpus, struct corpus_batch *batch, struct tokmap_error *error);
/* Returns true if the last input was decompressed, which takes longer than to read. */
bool corpus_is_compressed(const struct corpus *corpus);

/* ---- for corpus_range.c ---- */

/* Opens the next input. An error of it becomes an issue of the batch, but not of one of which a part is read. Statuses:
 * OK, ERROR_INTERRUPTED, ERROR_MEMORY, and those of opening a part. */
enum tokmap_status corpus_file_begin(struct corpus *corpus, struct corpus_batch *batch, const char *path,
                                     struct tokmap_error *error);

#endif
