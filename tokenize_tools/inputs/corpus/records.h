/* SPDX-License-Identifier: MIT */
/* records.h - makes documents from the raw bytes of a batch: parses JSON, decodes escapes, and checks UTF-8. */
#ifndef TOKMAP_CORPUS_RECORDS_H
#define TOKMAP_CORPUS_RECORDS_H

#include "corpus.h"

/* Reasons for a record that cannot be used, beside those in json_field.h. The detail of a row's number of fields says
 * how many it has. */
#define CORPUS_ROW_FIELDS "the row has another number of fields than the header"
#define CORPUS_ARRAY_OPEN "the file ends inside the array"
#define CORPUS_ARRAY_FOLLOWED "the array is followed by more text"

/* Adds the documents of a batch that corpus_next() has filled, and the issues of its records. The batch's issues are
 * then in the order of the input. Unless options->skip is set, the function stops at the first issue. Escapes are
 * decoded in place, so it must be called once per filling. Any thread; a batch belongs to one thread at a time.
 * Statuses: OK (also with issues), ERROR_MEMORY. */
enum tokmap_status records_to_documents(const struct corpus_options *options, struct corpus_batch *batch,
                                        struct tokmap_error *error);

#endif
