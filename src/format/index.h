/*
 * index.h - reads the index of a shard, NAME.tmx: opens it, checks it, and answers questions from its sections.
 *
 * index_open() checks everything that can be checked at a cost that does not grow with the shard. index_verify() checks
 * the rest. All other functions read the sections documents and origin in place, from the mapping, and compare every
 * number with its bounds before they use it. A hostile index therefore results in TOKMAP_ERROR_CORRUPT, never in an
 * access outside the mapping. FORMAT.md lists both sets of checks.
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

/* An open index. It is immutable, so any thread may use it. */
struct index {
    const char *path; /* owned by the caller; must outlive the index */
    const uint8_t *bytes; /* the mapping of the whole file */
    uint64_t file_bytes;
    uint64_t device, inode;
    struct section_shard shard;
    uint64_t token_bytes; /* tokens * width */
    uint64_t carries;     /* tokens >> 32 */
    struct index_section documents, blocks, origin, about;
};

/* Maps the file at `path` and checks it as described above. On failure *index needs no index_close().
 * Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_FORMAT, ERROR_VERSION, ERROR_CORRUPT, ERROR_TRUNCATED,
 * ERROR_UNSUPPORTED, ERROR_MEMORY. */
enum tokmap_status index_open(struct index *index, const char *path, struct tokmap_error *error);
void index_close(struct index *index);

/* Returns the number of blocks of tokens. */
static inline uint64_t index_blocks(const struct index *index)
{
    return index->blocks.bytes / sizeof(uint64_t);
}

/* Returns the stored hash of a block of tokens; block < index_blocks(). */
uint64_t index_block_hash(const struct index *index, uint64_t block);

/* Reads the pages that hold the hashes of blocks [first, last), so that reading the hashes cannot raise SIGBUS
 * afterwards. Statuses: OK, ERROR_TRUNCATED (the file has become shorter), ERROR_IO (the storage reports an error). */
enum tokmap_status index_blocks_check(const struct index *index, uint64_t first, uint64_t last,
                                      struct tokmap_error *error);
/* Returns true if the length of the file has changed since it was opened. */
bool index_was_cut(const struct index *index);

/* Finds the tokens [*start, *end) of the shard that belong to document `number` (< documents). Statuses: OK,
 * ERROR_CORRUPT. */
enum tokmap_status index_document(const struct index *index, uint64_t number, uint64_t *start, uint64_t *end,
                                  struct tokmap_error *error);
/* Finds the document that holds token `token` (< tokens), and its bounds. Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status index_document_at(const struct index *index, uint64_t token, uint64_t *number, uint64_t *start,
                                     uint64_t *end, struct tokmap_error *error);
/* Visits the ends of documents, from document `number` on, that are at most `last`. An end below `least` is an
 * error. Each distinct end is counted in *used and, while *used < capacity, written to ends[*used] with `shift`
 * added. Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status index_ends(const struct index *index, uint64_t number, uint64_t least, uint64_t last, uint64_t shift,
                              uint64_t *ends, uint64_t capacity, uint64_t *used, struct tokmap_error *error);

/* A position in a walk over the ends of all documents, in order. A zeroed struct is at the first document. */
struct index_walk {
    uint64_t document; /* the next document */
    uint64_t high;     /* number of carries that are at most `document` */
    uint64_t before;   /* the end of the previous document */
};

/* Writes the next distinct ends, at most `capacity` (>= 1) of them, each with `shift` added, and advances the walk.
 * The last end of a walk is the number of tokens; a call after it sets *used to 0. Statuses: OK, ERROR_CORRUPT. */
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

/* Checks the hash of the about section and returns its text, which lives as long as the index and is not terminated.
 * Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status index_about(const struct index *index, const char **about, uint64_t *bytes,
                               struct tokmap_error *error);

/* Computes the content id as FORMAT.md defines it. */
void index_content_id(uint32_t width, uint64_t tokens, uint64_t documents, uint64_t blocks_hash,
                      uint64_t documents_hash, uint8_t content[16]);

/* Reads every byte of the index and checks every rule of FORMAT.md that index_open() does not check. Calls fault()
 * for each fault; if it returns a value other than 0, the search ends. Returns that value, or 0. */
int index_verify(const struct index *index, int (*fault)(void *user, const struct tokmap_error *error), void *user);

#endif
