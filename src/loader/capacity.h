/* SPDX-License-Identifier: MIT */
/* capacity.h - how many documents one window can contain: the capacity that cu_seqlens needs. */
#ifndef TOKMAP_LOADER_CAPACITY_H
#define TOKMAP_LOADER_CAPACITY_H

#include "tokmap/tokmap.h"

/* Computes the largest number of documents that any seq_len consecutive tokens of the dataset contain, including
 * windows that wrap across the seam. 1 <= seq_len <= the dataset's tokens. The result is exact; for a synthetic dataset
 * it is an upper bound. The function reads the ends of all documents twice, so its cost is proportional to the number
 * of documents.
 * Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status capacity_documents_most(const struct tokmap_dataset *dataset, uint64_t seq_len, uint64_t *most,
                                           struct tokmap_error *error);

#endif
