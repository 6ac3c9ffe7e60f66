/*
 * near_duplicates.h - finds documents that have most of their words in common with an earlier one (`pack --dedup
 * minhash`).
 *
 * All inputs are read once before they are packed. Threads compute the bands of each document's signature (minhash.h),
 * which go to a file without a name, 16 bytes for each band, in 256 partitions by a hash. Documents that have a band in
 * common are in one cluster, and so are those that are connected by others: A and C, if both have a band in common with
 * B. Of each cluster the first document in the order of the inputs is kept. The clusters are those of datatrove; it
 * keeps another one of their documents.
 *
 * Bytes a document: 4 in memory, and in the file 8, and 16 for each band (232 with 14 bands). The rest of the memory is
 * bounded: `memory` for the bands of a partition, and 48 MiB for files.
 *
 * A document with fewer words than a shingle has no signature, and is kept. Documents with an excluded n-gram are
 * dropped for that, whatever is in a cluster with them, so they have no signature either.
 */
#ifndef TOKMAP_PACK_NEAR_DUPLICATES_H
#define TOKMAP_PACK_NEAR_DUPLICATES_H

#include "duplicates.h"
#include "minhash.h"
#include "ngram_set.h"

struct near_duplicates; /* for one thread at a time */

struct near_options {
    const struct minhash_form *form;
    const struct ngram_set *ngrams;                      /* documents with one of them are not compared; NULL: none */
    struct duplicates_options inputs;                    /* memory, folder, and how they are read */
    void (*progress)(void *user, uint64_t stored_bytes); /* as in ordered_workers.h; with inputs.user; may be NULL */
};

/* Reads the inputs, and finds all clusters. The options stay valid until near_duplicates_free(), which must also be
 * called after an error. Statuses: OK, ERROR_ARGUMENT (an input cannot be read twice), ERROR_LIMIT (2^32 - 1
 * documents), ERROR_MEMORY, ERROR_IO, ERROR_INTERRUPTED, and those of reading the inputs. */
enum tokmap_status near_duplicates_new(struct near_duplicates **near, const struct near_options *options,
                                       struct tokmap_error *error);
void near_duplicates_free(struct near_duplicates *near); /* accepts NULL */

/* Says whether a document, by its number from 0 in the order of the inputs, is in a cluster with an earlier one, and
 * then sets *kept to the place of the first document of this cluster. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status near_duplicates_find(struct near_duplicates *near, uint64_t document, bool *is_duplicate,
                                        struct document_place *kept, struct tokmap_error *error);

/* At the end of the input: checks that both readings had the same documents. *file_bytes: the most that the file of
 * bands had. Statuses: OK, ERROR_MISMATCH. */
enum tokmap_status near_duplicates_finish(const struct near_duplicates *near, const struct place_counter *all,
                                          uint64_t *file_bytes, struct tokmap_error *error);

#endif
