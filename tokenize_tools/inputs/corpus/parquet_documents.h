/* SPDX-License-Identifier: MIT */
/*
 * parquet_documents.h - rows of Parquet files: one thread reads them into parts of batches (a part of corpus.h), and
 * each thread makes documents from parts beside the others (a part of records.h).
 */
#ifndef TOKMAP_CORPUS_PARQUET_DOCUMENTS_H
#define TOKMAP_CORPUS_PARQUET_DOCUMENTS_H

#include "corpus_state.h"
#include "document_make.h"
#include "parquet_open.h"

#define PARQUET_ELEMENT_NULL "is null"

/* Opens the file, which the stream has open, as a Parquet file. Statuses: those of corpus_next(). */
enum tokmap_status parquet_file_begin(struct corpus *corpus, struct corpus_batch *batch, struct tokmap_error *error);

/* Decodes the pages of a part and adds its documents, and the issues of its rows. Rows in a page that cannot be decoded
 * are one issue, with the reason that the page has. Statuses: OK (also with issues), ERROR_MEMORY. */
enum tokmap_status parquet_part_documents(struct making *making, uint32_t part);

#endif
