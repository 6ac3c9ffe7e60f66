/* warc_documents.h - makes documents from the records of a WARC file. A part of records.h. */
#ifndef TOKMAP_INPUTS_WARC_DOCUMENTS_H
#define TOKMAP_INPUTS_WARC_DOCUMENTS_H

#include "document_make.h"

/* Adds the documents of a part of a batch, and the issues of its records. Each record of text is a document, whose text
 * is the content as it is. Values of options->columns are those of the header's lines with these names, without case;
 * of several lines with one name, the first one counts. Any thread; a batch belongs to one thread at a time. Statuses:
 * OK (also with issues), ERROR_MEMORY. */
enum tokmap_status warc_part_documents(struct making *making, uint32_t part_number);

#endif
