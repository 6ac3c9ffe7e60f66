/* SPDX-License-Identifier: MIT */
/*
 * corpus_resume.h - continues the reading of inputs where another process was.
 *
 * The inputs before the open one are only named again, not opened. A plain file of JSONL or text is continued by a
 * seek, and a compressed one by a seek to the frame from which the place is reached. Anything else is read again from
 * the beginning of its file, without making documents: records whose borders depend on all that precedes them (JSON,
 * CSV, WARC, texts between separators). Of a Parquet file, pages are read again and not decoded. A URL is downloaded
 * again, and must still be the version of which a part was read. If the server names no version, no place in it is fit,
 * and work continues before it or after it.
 */
#ifndef TOKMAP_CORPUS_CORPUS_RESUME_H
#define TOKMAP_CORPUS_CORPUS_RESUME_H

#include "corpus.h"

/* For a corpus that was opened just now with the same operands and options: makes corpus_next() continue at a place
 * that is not unfit. *carried: bytes after it that count as read, as in struct corpus_place. Statuses: OK,
 * ERROR_MISMATCH (the inputs are others), those of corpus_next(). */
enum tokmap_status corpus_resume(struct corpus *corpus, const struct corpus_place *place, uint64_t *carried,
                                 struct tokmap_error *error);

#endif
