/*
 * shuffle.h - puts the documents of an output in a keyed random order, whatever their number, in two passes over their
 * tokens and in bounded memory.
 *
 *     documents -> shuffle_add() -> sorted chunks -> shuffle_finish() -> shard sets
 *
 * The order is a function of the seed and of where each document is in the inputs (shuffle_record.h): every order can
 * appear, all are equally likely as far as the hash is random, and neither the size of the chunks nor the number of
 * threads changes it. With several sets (split.h), each set gets its documents in this order.
 *
 * Memory: SHUFFLE_CHUNK_BYTES for a chunk, and then as much for the merge; the path of each input file, and 16 bytes.
 * A document in parts is collected up to the size of a record (1 MiB); what is longer goes to a file of its own kind
 * and is copied from there in pieces, unless it has a mask, with which the caller has held it in memory, too.
 *
 * Storage: until the end, unnamed files in `folder` hold the tokens and 56 to 63 bytes a document, unless all of it
 * fits in one chunk. They disappear however the program ends.
 */
#ifndef TOKMAP_PACK_SHUFFLE_H
#define TOKMAP_PACK_SHUFFLE_H

#include <stdbool.h>

#include "shard_set.h"

#define SHUFFLE_CHUNK_BYTES ((uint64_t)96 << 20)

struct shuffle; /* for one thread at a time */

struct shuffle_options {
    uint64_t seed;
    uint32_t width;   /* of a token in bytes */
    uint32_t columns; /* values of a document */
    bool mask;
    const char *folder;   /* of the unnamed files; copied */
    uint64_t chunk_bytes; /* 0: SHUFFLE_CHUNK_BYTES; at least SHUFFLE_CHUNK_LEAST; no choice changes the order */
    /* For shuffle_finish(); each may be NULL: true ends it with ERROR_INTERRUPTED; and how many tokens of all are
     * written. */
    bool (*stop)(void *user);
    void (*progress)(void *user, uint64_t tokens, uint64_t all);
    void *user;
};

/* Statuses: OK, ERROR_MEMORY. */
enum tokmap_status shuffle_open(struct shuffle **shuffle, const struct shuffle_options *options,
                                struct tokmap_error *error);

/* Adds documents of a set, as shard_set_add() does. Each document has the input and the position that its record has.
 * Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status shuffle_add(struct shuffle *shuffle, uint32_t set, const struct document_run *run,
                               struct tokmap_error *error);

/* Adds all documents to the shard sets, in their order. Statuses: OK, ERROR_CORRUPT (an unnamed file is not what was
 * written), ERROR_IO, ERROR_MEMORY, ERROR_INTERRUPTED, those of shard_set_add(). */
enum tokmap_status shuffle_finish(struct shuffle *shuffle, struct shard_set *const *sets, struct tokmap_error *error);

void shuffle_free(struct shuffle *shuffle); /* accepts NULL */

#endif
