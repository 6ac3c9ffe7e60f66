/*
 * index.h - reads a .tmx: opens and checks it, and answers from its sections.
 *
 * index_open() checks what can be checked at a cost that does not grow with the shard, index_verify() the rest. In between
 * documents and origin are read in place from the mapping, every number of them compared with its bounds before it is
 * used: a hostile index gives TOKMAP_ERROR_CORRUPT, never an access outside the mapping.
 */
#ifndef TOKMAP_FORMAT_INDEX_H
#define TOKMAP_FORMAT_INDEX_H

#include <stdbool.h>

#include "layout.h"
#include "tokmap/tokmap.h"

struct index_section {
    uint64_t offset; /* 0: the index has no such section */
    uint64_t bytes;
    uint64_t hash;
};

/* Immutable once open; any thread. */
struct index {
    const char *path; /* the caller's; must live as long */
    const uint8_t *bytes; /* the whole file, mapped */
    uint64_t file_bytes;
    uint64_t device, inode;
    struct section_shard shard;
    uint64_t token_bytes; /* tokens * width */
    uint64_t carries;     /* tokens >> 32 */
    struct index_section documents, blocks, origin, about;
};

/* Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_FORMAT, ERROR_VERSION, ERROR_CORRUPT, ERROR_TRUNCATED,
 * ERROR_UNSUPPORTED, ERROR_MEMORY. */
enum tokmap_status index_open(struct index *index, const char *path, struct tokmap_error *error);
void index_close(struct index *index);

static inline uint64_t index_blocks(const struct index *index)
{
    return index->blocks.bytes / sizeof(uint64_t);
}

/* Hash of a block of tokens; block < index_blocks(). */
uint64_t index_block_hash(const struct index *index, uint64_t block);

/* Makes the hashes of blocks [first, last) present, so that reading them is no signal.
 * Statuses: OK, ERROR_TRUNCATED (the file was cut), ERROR_IO (its storage fails). */
enum tokmap_status index_blocks_check(const struct index *index, uint64_t first, uint64_t last,
                                      struct tokmap_error *error);
/* Whether the file has another length than when it was opened. */
bool index_was_cut(const struct index *index);

/* Document `number` (< documents) holds tokens [*start, *end) of the shard. Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status index_document(const struct index *index, uint64_t number, uint64_t *start, uint64_t *end,
                                  struct tokmap_error *error);
/* The document that holds token `token` (< tokens). Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status index_document_at(const struct index *index, uint64_t token, uint64_t *number, uint64_t *start,
                                     uint64_t *end, struct tokmap_error *error);
/* Walks the ends of documents from `number` on that are <= last, none of which may be below `least`; each distinct end is
 * written once, plus `shift`, into ends[*used], if *used < capacity, and counted in *used. Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status index_ends(const struct index *index, uint64_t number, uint64_t least, uint64_t last, uint64_t shift,
                              uint64_t *ends, uint64_t capacity, uint64_t *used, struct tokmap_error *error);

/* Goes through the ends of all documents in order. All zero: at the first. */
struct index_walk {
    uint64_t document; /* the next */
    uint64_t high;     /* carries at or below it */
    uint64_t before;   /* the end of the last */
};

/* The next distinct ends, at most `capacity` (>= 1) of them, plus `shift`; the last of all is the number of tokens, and
 * after it there are none: *used 0. Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status index_walk_ends(const struct index *index, struct index_walk *walk, uint64_t shift, uint64_t *ends,
                                   uint64_t capacity, uint64_t *used, struct tokmap_error *error);

/* Where a document (< documents) came from. Statuses: OK, ERROR_NOT_FOUND, ERROR_CORRUPT. */
enum tokmap_status index_origin(const struct index *index, uint64_t document, struct tokmap_origin *origin,
                                struct tokmap_error *error);

/* Where the parts of the origin section lie in it. False if its head contradicts its size. */
struct origin_layout {
    uint64_t runs, files, path_bytes;
    uint64_t runs_at, files_at, paths_at; /* from the section's start */
};
bool origin_layout_of(const struct index *index, struct origin_layout *layout);

/* The about section, its hash checked. Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status index_about(const struct index *index, const char **about, uint64_t *bytes,
                               struct tokmap_error *error);

/* The content id as the specification defines it. */
void index_content_id(uint32_t width, uint64_t tokens, uint64_t documents, uint64_t blocks_hash,
                      uint64_t documents_hash, uint8_t content[16]);

/* Reads the whole index again, every byte and every rule of FORMAT.md that index_open() leaves out, and calls fault() for
 * each fault; a result other than 0 from it ends the search. Returns that result, or 0. */
int index_verify(const struct index *index, int (*fault)(void *user, const struct tokmap_error *error), void *user);

#endif
