/*
 * foreign_documents.h - documents by the index of another project: Megatron's .idx or datatrove's .ds.index, read in
 * place.
 *
 * The functions are those of index_documents.h, with the same meaning. Opening checks only the ends of an index,
 * because more would take time proportional to the number of documents. So each function here compares each number
 * with its bounds and each answer with its neighbors, and a hostile index results in ERROR_CORRUPT.
 */
#ifndef TOKMAP_FORMAT_FOREIGN_DOCUMENTS_H
#define TOKMAP_FORMAT_FOREIGN_DOCUMENTS_H

#include "format/index_documents.h"
#include "megatron.h"

/* An index in memory. It is immutable, so any thread may use it. */
struct foreign_documents {
    const char *path;   /* of the index; owned by the caller */
    const uint8_t *map; /* all its bytes; NULL if there is no index, and then `count` is 0 */
    uint64_t bytes;
    uint64_t count;     /* number of documents */
    uint64_t tokens;    /* the end of the last one */
    bool is_megatron;   /* otherwise `map` has a u64 per document, its end */
    struct megatron_index megatron;
};

/* Finds the tokens of a document (< count). Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status foreign_document(const struct foreign_documents *documents, uint64_t number, uint64_t *start,
                                    uint64_t *end, struct tokmap_error *error);

/* Finds the document that holds a token (< tokens). O(log count). Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status foreign_document_at(const struct foreign_documents *documents, uint64_t token, uint64_t *number,
                                       uint64_t *start, uint64_t *end, struct tokmap_error *error);

/* See index_ends(). */
enum tokmap_status foreign_ends(const struct foreign_documents *documents, uint64_t number, uint64_t least,
                                uint64_t last, uint64_t shift, uint64_t *ends, uint64_t capacity, uint64_t *used,
                                struct tokmap_error *error);

/* See index_walk_ends(). */
enum tokmap_status foreign_walk_ends(const struct foreign_documents *documents, struct index_walk *walk, uint64_t shift,
                                     uint64_t *ends, uint64_t capacity, uint64_t *used, struct tokmap_error *error);

/* Checks every number of the index. Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status foreign_documents_check(const struct foreign_documents *documents, struct tokmap_error *error);

#endif
