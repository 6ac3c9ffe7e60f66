/* SPDX-License-Identifier: MIT */
/* shard_documents.h - finds the documents of one shard, or of the part of it that its dataset holds. Tokens and
 * documents are counted from the start of the part; a document that the part cuts has its tokens in the part only. */
#ifndef TOKMAP_DATASET_SHARD_DOCUMENTS_H
#define TOKMAP_DATASET_SHARD_DOCUMENTS_H

#include "format/index_documents.h"
#include "opened_dataset.h"

/* Returns whether some shard does not say where its documents are: such a dataset has 0 documents. */
bool dataset_documents_unknown(const struct tokmap_dataset *dataset);

/* Finds out whether the last token of the shard's part is not the last one of its document. Statuses: OK,
 * ERROR_CORRUPT. */
enum tokmap_status shard_is_cut(const struct shard *shard, bool *cut, struct tokmap_error *error);

/* Finds the tokens [*start, *end) of document `number` (< documents). Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status shard_document(const struct shard *shard, uint64_t number, uint64_t *start, uint64_t *end,
                                  struct tokmap_error *error);

/* Finds the document that holds token `token` (< tokens), and its bounds. Statuses: OK, ERROR_CORRUPT,
 * ERROR_UNSUPPORTED (documents are unknown). */
enum tokmap_status shard_document_at(const struct shard *shard, uint64_t token, uint64_t *number, uint64_t *start,
                                     uint64_t *end, struct index_part *part, struct tokmap_error *error);

/* Visits the ends of documents, from document `number` on, that are at most `last`; index_ends() has the rest.
 * Documents must be known. Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status shard_ends(const struct shard *shard, uint64_t number, uint64_t least, uint64_t last, uint64_t shift,
                              uint64_t *ends, uint64_t capacity, uint64_t *used, struct index_part *part,
                              struct tokmap_error *error);

/* Starts a walk over all documents of the shard. Statuses: OK, ERROR_UNSUPPORTED (documents are unknown). */
enum tokmap_status shard_walk_begin(const struct shard *shard, struct index_walk *walk, struct tokmap_error *error);
/* Continues it: index_walk_ends() has the rest; ends are token numbers of the dataset. Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status shard_walk_ends(const struct shard *shard, struct index_walk *walk, uint64_t *ends,
                                   uint64_t capacity, uint64_t *used, struct tokmap_error *error);

#endif
