/* SPDX-License-Identifier: MIT */
/*
 * foreign_index.h - the document index of another project: Megatron's .idx or datatrove's .ds.index, read in place.
 *
 * Opening compares every number of an index with its neighbors, because an index that contradicts itself means other
 * tokens than those that it would give; foreign_file.h says what that costs. The file can change afterwards, so each
 * function here compares a number with its bounds before it uses it, and its caller (src/dataset) compares the answer
 * with its neighbors. A hostile index results in ERROR_CORRUPT, never in an access outside it.
 */
#ifndef TOKMAP_FORMAT_FOREIGN_FOREIGN_INDEX_H
#define TOKMAP_FORMAT_FOREIGN_FOREIGN_INDEX_H

#include "foreign_bytes.h"
#include "megatron.h"

/* An index. It is immutable, so any thread may use it. */
struct foreign_index {
    struct foreign_bytes bytes; /* of the index; its count is 0 if there is no index, and then so is `count` */
    uint64_t count;             /* number of documents */
    uint64_t tokens;            /* the end of the last one */
    bool is_megatron;           /* otherwise the index has a u64 per document, its end */
    struct megatron_index megatron;
};

/* Finds the end of a document (< count), which is at most `tokens`. Statuses: OK, ERROR_CORRUPT, and, if the index is
 * read with pread, ERROR_IO and ERROR_TRUNCATED. */
enum tokmap_status foreign_index_end(const struct foreign_index *index, uint64_t document, uint64_t *end,
                                     struct tokmap_error *error);

/* Compares every number of the index with its bounds and neighbors. Statuses: OK, ERROR_CORRUPT (with the byte of the
 * first fault), ERROR_MEMORY, and those of foreign_load(). */
enum tokmap_status foreign_index_check(const struct foreign_index *index, struct tokmap_error *error);

#endif
