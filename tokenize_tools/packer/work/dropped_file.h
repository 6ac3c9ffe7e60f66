/* SPDX-License-Identifier: MIT */
/*
 * dropped_file.h - NAME.dropped: the list of the documents that `pack` has left out of a dataset because they are
 * duplicates or near-duplicates, or contain an excluded n-gram. FORMAT.md specifies it.
 *
 *     header, 80 bytes | entries, each a multiple of 8 bytes
 *
 * The entries are in the order of the input, so the file is written and read once from the beginning to the end,
 * whatever its size. An entry is an input, an n-gram, a duplicate, or an excluded document, and refers to inputs and
 * n-grams that precede it by their numbers.
 *
 * dropped_open() checks the header and the hash of all entries. dropped_next() compares each number with its bounds,
 * so a hostile file results in ERROR_CORRUPT, never in an access outside it or a large allocation: it takes memory only
 * for inputs and n-grams that the file really has.
 */
#ifndef TOKMAP_WORK_DROPPED_FILE_H
#define TOKMAP_WORK_DROPPED_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/shard_file.h"
#include "tokmap/tokmap.h"

#define DROPPED_MAGIC SHARD_LIST_MAGIC
#define DROPPED_MAJOR 1
#define DROPPED_MINOR_NEAR 1                  /* of a list with near-duplicates, */
#define DROPPED_MINOR_READING 2               /* of one with a reading; other lists have 0 */
#define DROPPED_TEXT_MOST ((uint32_t)1 << 20) /* bytes of a path or an n-gram */

struct dropped_header {
    uint8_t magic[8];
    uint16_t major, minor;
    uint32_t header_bytes; /* 80 */
    uint64_t file_bytes;
    uint64_t documents;   /* documents that were read, dropped or not */
    uint64_t inputs;      /* inputs that have documents */
    uint64_t ngrams;      /* n-grams because of which documents were dropped */
    uint64_t duplicates;  /* documents dropped for this reason, or as near-duplicates */
    uint64_t excluded;    /* documents dropped for this reason */
    uint64_t body_hash;   /* XXH3-64 of everything after the header */
    uint64_t header_hash; /* XXH3-64 of the preceding 72 bytes */
};
_Static_assert(sizeof(struct dropped_header) == 80, "as in FORMAT.md");

enum dropped_type {
    DROPPED_INPUT = 1,
    DROPPED_NGRAM = 2,
    DROPPED_DUPLICATE = 3,
    DROPPED_EXCLUDED = 4,
    DROPPED_NEAR_DUPLICATE = 5, /* with the layout of a duplicate */
    DROPPED_READING = 6         /* with the layout of an input, and a text in place of the path */
};

/* Entries as they are stored. Paths and texts follow, without a zero byte, and zeros up to a multiple of 8. */
struct dropped_input {
    uint32_t type, path_bytes; /* 1 to DROPPED_TEXT_MOST */
};
struct dropped_ngram {
    uint32_t type, text_bytes; /* 1 to DROPPED_TEXT_MOST; the path follows the text */
    uint64_t record;           /* of the file that lists it */
    uint32_t path_bytes;       /* of that file */
    uint32_t reserved;         /* 0 */
};
struct dropped_duplicate {
    uint32_t type, input;
    uint64_t record;      /* of the dropped document */
    uint64_t kept_record; /* of the document that was kept, which precedes it */
    uint32_t kept_input;
    uint32_t reserved; /* 0 */
};
struct dropped_excluded {
    uint32_t type, input;
    uint64_t record;
    uint64_t ngram;
};
_Static_assert(sizeof(struct dropped_input) == 8 && sizeof(struct dropped_ngram) == 24, "as in FORMAT.md");
_Static_assert(sizeof(struct dropped_duplicate) == 32 && sizeof(struct dropped_excluded) == 24, "as in FORMAT.md");

/* A dropped document. The texts are valid until dropped_close(); they are not terminated. */
struct dropped_document {
    enum dropped_type type; /* DROPPED_DUPLICATE, DROPPED_NEAR_DUPLICATE, or DROPPED_EXCLUDED */
    const char *path;       /* of its input */
    uint64_t path_bytes, record;
    /* Path and record of the document that was kept, if this one is a duplicate or near-duplicate. Path and record of
     * the n-gram, if it was excluded. */
    const char *other_path;
    uint64_t other_path_bytes, other_record;
    const char *ngram; /* its text, of an excluded document; else NULL */
    uint64_t ngram_bytes;
    uint64_t offset; /* of the entry in the file */
};

struct dropped_file; /* for one thread at a time */

/* Opens the file and checks its header and hash. stop(user) ends that; it may be NULL. `path` must stay valid until
 * dropped_close(). Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_FORMAT, ERROR_VERSION, ERROR_CORRUPT,
 * ERROR_TRUNCATED, ERROR_INTERRUPTED, ERROR_MEMORY. */
enum tokmap_status dropped_open(struct dropped_file **file, const char *path, bool (*stop)(void *user), void *user,
                                struct tokmap_error *error);
void dropped_close(struct dropped_file *file); /* accepts NULL */

const struct dropped_header *dropped_header(const struct dropped_file *file);

/* Reads the next document. Statuses: OK, END (the counts of the header are those of the entries), ERROR_CORRUPT,
 * ERROR_IO, ERROR_MEMORY. */
enum tokmap_status dropped_next(struct dropped_file *file, struct dropped_document *document,
                                struct tokmap_error *error);

/* Returns how the inputs were read, which decides what their records are: a text that a command compares with its own.
 * "": the list does not say. */
const char *dropped_reading(const struct dropped_file *file);

/* After END: returns a path that two inputs have, so that it does not say which one is meant, or NULL. */
const char *dropped_twice(struct dropped_file *file);

/* Returns true if the file at `path` begins with the magic of such a list. */
bool dropped_is_file(const char *path);

#endif
