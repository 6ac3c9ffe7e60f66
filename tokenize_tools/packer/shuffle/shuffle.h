/* SPDX-License-Identifier: MIT */
/*
 * shuffle.h - puts the documents of an output in a keyed random order, whatever their number, in two passes over their
 * tokens and in bounded memory.
 *
 *     documents -> shuffle_add() -> sorted chunks -> shuffle_finish() -> shard sets
 *
 * The order is a function of the seed and of where each document is in the inputs (shuffle_chunks.h): every order can
 * appear, all are equally likely as far as the hash is random, and neither the size of the chunks nor the number of
 * threads changes it. With several sets (split.h), each set gets its documents in this order.
 *
 * Memory: SHUFFLE_CHUNK_BYTES for a chunk, and then as much for the merge; the path of each input file, and 16 bytes.
 * A document in parts is collected up to the size of a record (1 MiB); what is longer goes to a file of its own kind
 * and is copied from there in slabs, unless it has a mask, with which the caller has held it in memory, too.
 *
 * Storage: until the end, files in `folder` hold the tokens and 56 to 63 bytes a document, unless all of it fits in one
 * chunk. They have no names, and disappear however the program ends. Where the work can be continued (options.place),
 * they have names, and shuffle_save() states what another process needs to go on, in either pass.
 */
#ifndef TOKMAP_SHUFFLE_SHUFFLE_H
#define TOKMAP_SHUFFLE_SHUFFLE_H

#include <stdbool.h>

#include "encode/shard_set.h"
#include "shuffle_chunks.h"

#define SHUFFLE_CHUNK_BYTES ((uint64_t)96 << 20)

struct shuffle; /* for one thread at a time */

/* Facts that all documents have in common, paths of files, and calls to the owner. */
struct shuffle_options {
    uint64_t seed;
    uint32_t width;   /* of a token in bytes */
    uint32_t columns; /* values of a document */
    uint32_t sets;    /* of documents */
    bool mask;
    bool own_thread;      /* a thread of its own writes chunks: see shuffle_chunks.h */
    bool keyed;           /* chunks are of one set each, and have keys; shuffle_sort() ends the work */
    uint64_t first_input; /* the number, among those of all processes, of the first input */
    const char *folder;   /* of the unnamed files; copied */
    uint64_t chunk_bytes; /* 0: SHUFFLE_CHUNK_BYTES; at least SHUFFLE_CHUNK_LEAST; no choice changes the order */
    /* For shuffle_finish(); each may be NULL: true ends it with ERROR_INTERRUPTED; and how many tokens of all are
     * written. */
    bool (*stop)(void *user);
    void (*progress)(void *user, uint64_t tokens, uint64_t all);
    void *user;
    /* Called before the first file is made: sets *folder to that of files with names, or leaves it NULL. May be NULL.
     */
    enum tokmap_status (*place)(void *owner, const char **folder, struct tokmap_error *error);
    /* Called often by shuffle_finish(), between two documents. May be NULL. */
    enum tokmap_status (*save)(void *owner, struct tokmap_error *error);
    void *owner;
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

/* With options.keyed, and in place of shuffle_finish(): writes all documents to chunks in files with names. sync: they
 * must survive a crash. *sorted is valid as long as the shuffle. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
struct shuffle_sorted {
    const struct shuffle_chunk *chunks; /* those of a file follow each other, with their keys */
    uint64_t count, files, long_bytes;
};
enum tokmap_status shuffle_sort(struct shuffle *shuffle, bool sync, struct shuffle_sorted *sorted,
                                struct tokmap_error *error);

/* The names of these files in their folder: "chunks-0" and so on, and "long-0". */
#define SHUFFLE_CHUNKS_NAME "chunks"
#define SHUFFLE_LONG_NAME "long"

/* Leaves files with names. Accepts NULL. */
void shuffle_free(struct shuffle *shuffle);
/* Removes the files with names, which are no longer needed: the documents are given up. */
void shuffle_remove(struct shuffle *shuffle);
/* Does the same when all documents are in their shards. folder: of the saved work, or NULL; files with such names there
 * that this process has not made are removed, too: if a killed process had come this far, a power cut may have brought
 * them back. sync: returns when storage has removed the names, so that no power cut brings them back when the journal
 * is gone. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status shuffle_end(struct shuffle *shuffle, const char *folder, bool sync, struct tokmap_error *error);
/* Returns true if an entry of the folder is the name of such a file. */
bool shuffle_is_name(const char *entry);

/* ---- for another process that continues ---- */

/* All that is saved beside the increments. */
struct shuffle_state {
    uint64_t chunks, files, file_bytes, has_long, long_bytes, path_bytes;
    uint64_t tokens, largest;
    uint64_t open, open_tokens, open_text, open_at; /* the document that has not ended */
    uint64_t merging, finished, done;               /* the second pass */
};

/* Returns false if the files have no names, or the documents are merged in memory. */
bool shuffle_can_save(const struct shuffle *shuffle);
/* Writes what is in memory, as a chunk of its own, passes on what was added since the last call, and states the rest.
 * The files have it after shuffle_sync(). Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status shuffle_save(struct shuffle *shuffle, struct shuffle_state *state, struct state_sink *sink,
                                struct tokmap_error *error);
enum tokmap_status shuffle_sync(struct shuffle *shuffle, struct tokmap_error *error);

/* After shuffle_open(): takes the increments of all calls of shuffle_save(), in their order, and then the state of the
 * last one. Bytes that were written later are cut off. Statuses: OK, ERROR_CORRUPT, ERROR_NOT_FOUND (a file is
 * missing), ERROR_IO, ERROR_MEMORY, those of options.place. */
enum tokmap_status shuffle_load(struct shuffle *shuffle, uint32_t kind, const uint8_t *bytes, size_t count,
                                struct tokmap_error *error);
enum tokmap_status shuffle_restored(struct shuffle *shuffle, const struct shuffle_state *state,
                                    struct tokmap_error *error);

#endif
