/* parquet_documents.h - makes documents from a part of a batch that is rows of a Parquet file. A part of records.h. */
#ifndef TOKMAP_CORPUS_PARQUET_DOCUMENTS_H
#define TOKMAP_CORPUS_PARQUET_DOCUMENTS_H

#include "document_make.h"
#include "parquet_source.h"

#define PARQUET_ELEMENT_NULL "is null"

/* The columns that the options need, in the order of record_fields(). wanted: room for RECORD_FIELDS_MOST. Returns how
 * many. The names stay those of the options. */
size_t parquet_wanted_fields(const struct corpus_options *options, struct parquet_wanted *wanted);

/* Decodes the pages of a part and adds its documents, and the issues of its rows. Rows in a page that cannot be decoded
 * are one issue, with the reason that the page has. Statuses: OK (also with issues), ERROR_MEMORY. */
enum tokmap_status parquet_part_documents(struct making *making, uint32_t part);

#endif
