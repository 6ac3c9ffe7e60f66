/* SPDX-License-Identifier: MIT */
/* corpus_issue.h - error messages about inputs. Messages name fields of struct corpus_options. */
#ifndef TOKMAP_CORPUS_CORPUS_ISSUE_H
#define TOKMAP_CORPUS_CORPUS_ISSUE_H

#include "corpus.h"

/* Returns the issue's status, which is never OK, and describes the issue in *error (which may be NULL): path, line,
 * offset and message. options: those that the corpus was opened with. */
enum tokmap_status corpus_issue_to_error(const struct corpus_issue *issue, const struct corpus_options *options,
                                         struct tokmap_error *error);

/* Adds the path and the line of a document to an error that occurred while the document was processed, and removes the
 * offset, which counts in the document's text and not in the file. document: an index below batch->document_count. */
void corpus_error_add_place(const struct corpus_batch *batch, uint64_t document, struct tokmap_error *error);

#endif
