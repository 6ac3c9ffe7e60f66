/* SPDX-License-Identifier: MIT */
/*
 * parquet_documents.h - rows of Parquet files: one thread reads them into parts of batches (a part of corpus.h), and
 * each thread makes documents from parts beside the others (a part of records.h).
 */
#ifndef TOKMAP_CORPUS_PARQUET_DOCUMENTS_H
#define TOKMAP_CORPUS_PARQUET_DOCUMENTS_H

#include "corpus_state.h"
#include "document_make.h"
#include "parquet/parquet.h"

#define PARQUET_ELEMENT_NULL "is null"

/* Opens a Parquet file for parquet_source_next(), with the columns that the options name, or the row groups `part` of
 * it, if that is not NULL. *pool is made if it is NULL. Statuses: those of parquet_source_open(). */
enum tokmap_status parquet_open(struct parquet_source **source, const char *path, const struct corpus_options *options,
                                const struct corpus_range *part, struct parquet_pool **pool,
                                struct tokmap_error *error);

/* Opens the file, which the stream has open, as a Parquet file. Statuses: those of corpus_next(). */
enum tokmap_status parquet_file_begin(struct corpus *corpus, struct corpus_batch *batch, struct tokmap_error *error);

/* Decodes the pages of a part and adds its documents, and the issues of its rows. Rows in a page that cannot be decoded
 * are one issue, with the reason that the page has. Statuses: OK (also with issues), ERROR_MEMORY. */
enum tokmap_status parquet_part_documents(struct making *making, uint32_t part);

#endif
