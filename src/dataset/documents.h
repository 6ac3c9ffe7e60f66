/* SPDX-License-Identifier: MIT */
/*
 * documents.h - the shard of a token or document, the ends of documents in a range of a dataset, and a walk over all of
 * them. For any thread.
 */
#ifndef TOKMAP_DATASET_DOCUMENTS_H
#define TOKMAP_DATASET_DOCUMENTS_H

#include <stdbool.h>

#include "format/index_documents.h"

struct shard;

/* Returns the number of the shard that holds a token (token < tokens). Tries the shard number `hint` first;
 * otherwise the cost is O(log shards). */
uint64_t dataset_shard_of(const struct tokmap_dataset *dataset, uint64_t token, uint64_t hint);

/* Returns the number of the shard that holds a document (< documents). */
uint64_t dataset_shard_of_document(const struct tokmap_dataset *dataset, uint64_t document);

/* Returns whether some shard does not say where its documents are: such a dataset has 0 documents. */
bool dataset_documents_unknown(const struct tokmap_dataset *dataset);

/* Finds out whether the last token of the shard's part is not the last one of its document. Statuses: OK,
 * ERROR_CORRUPT. */
enum tokmap_status shard_is_cut(const struct shard *shard, bool *cut, struct tokmap_error *error);

/* Reports that the caller of a public function has given no dataset, or no place for the result. Returns
 * ERROR_ARGUMENT. */
enum tokmap_status dataset_no_room(struct tokmap_error *error);

/* Returns ERROR_RANGE if the dataset does not have these tokens. */
enum tokmap_status dataset_range_check(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count,
                                       struct tokmap_error *error);

/* Do what the public functions do, for arguments that are not NULL. */
enum tokmap_status dataset_document(const struct tokmap_dataset *dataset, uint64_t number,
                                    struct tokmap_document *document, struct tokmap_error *error);
enum tokmap_status dataset_document_at(const struct tokmap_dataset *dataset, uint64_t token,
                                       struct tokmap_document *document, struct tokmap_error *error);

/* Finds the documents that end inside (first, first + count] and writes their ends, in order, as distances from
 * `first`. The end of an empty document equals the previous end and is omitted, so each distance appears once. The
 * range must be inside the dataset: first + count <= tokens. *start: the start of the document that holds token
 * `first`. Writes at most `capacity` ends; *used is the number of ends.
 * Statuses: OK, ERROR_LIMIT (there are more than `capacity` ends: the first `capacity` are written, and *used is a
 * sufficient capacity), ERROR_RANGE, ERROR_CORRUPT. */
enum tokmap_status dataset_ends(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count, uint64_t *ends,
                                uint64_t capacity, uint64_t *used, uint64_t *start, struct tokmap_error *error);

/* Does the same for a range that may have more ends than there is room for: writes the first of them, and lowers *count
 * to the tokens up to the last one if there are more. capacity: at least 1. Statuses: those of dataset_ends() but
 * ERROR_LIMIT. */
enum tokmap_status dataset_first_ends(const struct tokmap_dataset *dataset, uint64_t first, uint64_t *count,
                                      uint64_t *ends, uint64_t capacity, uint64_t *used, struct tokmap_error *error);

/* Returns an upper bound on the number of documents in any `tokens` consecutive tokens of a synthetic dataset,
 * including ranges that wrap across the seam. (For a dataset in files, the index has to be searched for this
 * number.) */
uint64_t dataset_synthetic_most_documents(const struct tokmap_dataset *dataset, uint64_t tokens);

/* A position in a walk over the ends of all documents, in order. A zeroed struct is at the first document. */
struct dataset_walk {
    uint64_t shard;
    bool begun;              /* `place` is set */
    struct index_walk place; /* the position in that shard */
};

/* Writes the next distinct ends, at most `capacity` (>= 1) of them, as token numbers of the dataset, and advances
 * the walk. The last end of a walk is the number of tokens; a call after it sets *used to 0. Statuses: OK,
 * ERROR_CORRUPT. */
enum tokmap_status dataset_walk_ends(const struct tokmap_dataset *dataset, struct dataset_walk *walk, uint64_t *ends,
                                     uint64_t capacity, uint64_t *used, struct tokmap_error *error);

#endif
