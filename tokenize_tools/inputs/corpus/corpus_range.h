/* SPDX-License-Identifier: MIT */
/*
 * corpus_range.h - reads a part of a large input, so that several processes share it, or continues where another
 * process was.
 *
 * A plain file of JSONL is cut at lines, because there every newline ends a record, and a Parquet file at row groups
 * (parquet.h). A compressed file has no places to begin at; a quoted field of CSV may contain newlines; and in
 * JSON, WARC, and texts with separators a border depends on all that precedes it.
 *
 * A border near byte x is the beginning of the first line that begins at x or later. A reader of the bytes before x
 * and a reader of the bytes after it find the same one, so every line is read once. Example: a file has lines at bytes
 * 0, 700, and 5000, and ends at 5100. Cut every 1000 bytes, it has the borders 0, 5000, 5000, 5000, 5000, 5000, 5100:
 * the first part has two lines, the sixth one has one, and the others are empty.
 */
#ifndef TOKMAP_CORPUS_CORPUS_RANGE_H
#define TOKMAP_CORPUS_CORPUS_RANGE_H

#include "corpus.h"
#include "parquet/parquet.h"

enum corpus_cut { CORPUS_CUT_NONE, CORPUS_CUT_LINES, CORPUS_CUT_GROUPS };

/* Finds where an input can be cut. Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status corpus_range_possible(const char *path, const struct corpus_options *options, enum corpus_cut *cut,
                                         struct tokmap_error *error);

/* Cuts a Parquet file. One whose footer is damaged, or that lacks the fields that are read, is not cut: its
 * reader reports that. The result must be freed, also after an error. Statuses: OK, ERROR_NOT_FOUND, ERROR_IO,
 * ERROR_MEMORY, ERROR_MISMATCH (it has changed while it was read). */
enum tokmap_status corpus_range_groups(const char *path, const struct corpus_options *options, uint64_t part_bytes,
                                       struct parquet_cut *cut, struct tokmap_error *error);

/* Sets *border to the one near byte `at` of a file; at most the size of the file. Statuses: OK, ERROR_INTERRUPTED (stop
 * returned true; it may be NULL), ERROR_MEMORY, ERROR_NOT_FOUND, ERROR_IO. */
enum tokmap_status corpus_range_border(const char *path, uint64_t at, bool (*stop)(void *user), void *user,
                                       uint64_t *border, struct tokmap_error *error);

/* Counts the newlines in the first `end` bytes of a file. Statuses: as above. */
enum tokmap_status corpus_range_lines(const char *path, uint64_t end, bool (*stop)(void *user), void *user,
                                      uint64_t *lines, struct tokmap_error *error);

/* For a corpus that was opened just now with options.range, of lines: makes corpus_next() begin there. Lines and
 * records are counted from there, since those before were not counted. *carried: bytes that count as read, as in
 * corpus_resume(). Statuses: those of corpus_resume(). */
enum tokmap_status corpus_range_begin(struct corpus *corpus, uint64_t *carried, struct tokmap_error *error);

/*
 * Of the reading that is continued, the inputs before the open one are only named again, not opened. A plain file of
 * JSONL or text is continued by a seek, and a compressed one by a seek to the frame from which the place is reached.
 * Anything else is read again from the beginning of its file, without making documents: records whose borders depend on
 * all that precedes them (JSON, CSV, WARC, texts between separators). Of a Parquet file, the pages of the last row
 * group are read again and not decoded. Any other URL is downloaded again. A URL must still be the version of which a
 * part was read. If the server names no version, no place in it is fit, and work continues before it or after it.
 */

/* For a corpus that was opened just now with the same operands and options: makes corpus_next() continue at a place
 * that is not unfit. *carried: bytes after it that count as read, as in struct corpus_place. Statuses: OK,
 * ERROR_MISMATCH (the inputs are others), those of corpus_next(). */
enum tokmap_status corpus_resume(struct corpus *corpus, const struct corpus_place *place, uint64_t *carried,
                                 struct tokmap_error *error);

#endif
