/* SPDX-License-Identifier: MIT */
/* document_bands.h - the bands of documents (minhash.h), by which near-duplicates are found (unit_scan.h,
 * drop_resolve.h). */
#ifndef TOKMAP_DEDUP_DOCUMENT_BANDS_H
#define TOKMAP_DEDUP_DOCUMENT_BANDS_H

#include <stdbool.h>

#include "common/bytes_buffer.h"
#include "corpus/corpus_batch.h"
#include "minhash.h"
#include "shingles.h"

/* A band of a document: 96 bits that identify it among those of its partition, which has 8 bits more. */
struct band_record {
    uint64_t low;
    uint32_t high;
    uint32_t document;
};
_Static_assert(sizeof(struct band_record) == 16, "the bytes a band that the manual states");

/* Data that all threads read; immutable. Begins as zero bytes. */
struct band_signer {
    struct minhash_form form;
    struct minhash *minhash;
    struct shingle_table *table;
};
/* Statuses: OK, ERROR_MEMORY. band_signer_free() also after a failure. */
enum tokmap_status band_signer_make(struct band_signer *signer, const struct minhash_form *form,
                                    struct tokmap_error *error);
void band_signer_free(struct band_signer *signer);

/* State of one batch. Begins as zero bytes. */
struct document_bands {
    struct shingle_scan shingles;
    uint64_t *signature;
    const struct minhash *minhash;
    bool any; /* a shingle was found */
};
void document_bands_free(struct document_bands *bands);

/* Appends to *into a byte that is 1 if the document has a signature, and then the struct hash128 of each band.
 * excluded: it has none. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status document_bands_add(const struct band_signer *signer, struct document_bands *bands,
                                      const struct corpus_document *document, bool excluded, struct bytes_buffer *into,
                                      struct tokmap_error *error);

/* Returns the clusters of documents: the first document of the one that `document` belongs to, where first[] has an
 * earlier one of its cluster for each document, or itself. */
uint32_t cluster_first(uint32_t *first, uint32_t document);
/* Joins the clusters of two documents. Returns whether they were different. */
bool clusters_join(uint32_t *first, uint32_t a, uint32_t b);

#endif
