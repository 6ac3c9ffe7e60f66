/* SPDX-License-Identifier: MIT */
/*
 * index_documents.h - finds documents and their origins in an open index. Any thread may call these functions. If the
 * index is read with pread, each may also return ERROR_IO or ERROR_TRUNCATED.
 */
#ifndef TOKMAP_FORMAT_INDEX_DOCUMENTS_H
#define TOKMAP_FORMAT_INDEX_DOCUMENTS_H

#include "index_reader.h"

/* The ends that were read last from an index without a mapping: a caller that looks for a document and then for what
 * follows it reads them once. For one index at a time. */
#define INDEX_PART 256
struct index_part {
    uint64_t first, end; /* the documents whose ends are in bytes[] */
    uint8_t bytes[INDEX_PART * 4];
};
static inline void index_part_clear(struct index_part *part)
{
    part->first = part->end = 0;
}

/* Finds the tokens [*start, *end) of the shard that belong to document `number` (< documents). Statuses: OK,
 * ERROR_CORRUPT. */
enum tokmap_status index_document(const struct index *index, uint64_t number, uint64_t *start, uint64_t *end,
                                  struct tokmap_error *error);
/* Finds the document that holds token `token` (< tokens), and its bounds. part: NULL, or what to use and fill.
 * Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status index_document_at(const struct index *index, uint64_t token, uint64_t *number, uint64_t *start,
                                     uint64_t *end, struct index_part *part, struct tokmap_error *error);
/* Visits the ends of documents, from document `number` on, that are at most `last`. An end below `least` is an
 * error. Each distinct end is counted in *used and, while *used < capacity, written to ends[*used] with `shift`
 * added. part: as for index_document_at(). Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status index_ends(const struct index *index, uint64_t number, uint64_t least, uint64_t last, uint64_t shift,
                              uint64_t *ends, uint64_t capacity, uint64_t *used, struct index_part *part,
                              struct tokmap_error *error);

/* A position in a walk over the ends of consecutive documents, in order. */
struct index_walk {
    uint64_t document;  /* the next document */
    uint64_t high;      /* number of carries that are at most `document` */
    uint64_t before;    /* the end of the previous document */
    uint64_t documents; /* the walk ends before this document, */
    uint64_t end;       /* whose tokens begin here; a document that ends later is cut */
};

/* Starts a walk over documents [first_document, end_document) of the index, of which tokens [first_token, end_token)
 * count. All of them: 0, documents, 0, tokens. Statuses: OK. */
enum tokmap_status index_walk_begin(const struct index *index, uint64_t first_document, uint64_t end_document,
                                    uint64_t first_token, uint64_t end_token, struct index_walk *walk,
                                    struct tokmap_error *error);

/* Writes the next distinct ends, at most `capacity` (>= 1) of them, each with `shift` added, and advances the walk.
 * The last end of a walk is end_token; a call after it sets *used to 0. Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status index_walk_ends(const struct index *index, struct index_walk *walk, uint64_t shift, uint64_t *ends,
                                   uint64_t capacity, uint64_t *used, struct tokmap_error *error);

/* Finds the input file and record of a document (< documents). Statuses: OK, ERROR_NOT_FOUND, ERROR_CORRUPT. */
enum tokmap_status index_origin(const struct index *index, uint64_t document, struct tokmap_origin *origin,
                                struct tokmap_error *error);

/* Computes where the parts of the origin section begin. Returns false if the section's head contradicts its size. */
struct origin_layout {
    uint64_t runs, files, path_bytes;
    uint64_t runs_at, files_at, paths_at; /* offsets from the start of the section */
};
bool origin_layout_of(const struct index *index, struct origin_layout *layout);

#endif
