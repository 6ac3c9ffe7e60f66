/* SPDX-License-Identifier: MIT */
/*
 * shuffle_chunks.h - the first pass of the shuffle: collects records in memory, sorts them whenever
 * a *chunk* is full, and writes the chunk to a file: one without a name, which disappears however the program ends, or
 * one that the caller opens, with which another process can go on.
 *
 * Memory: chunk_bytes, which hold the records and 32 bytes a document for sorting. Only pages with records are touched.
 * If all documents fit in one chunk, nothing is written.
 *
 * With `own_thread`, the memory has two chunks once it was full for the first time: a thread sorts and writes one of
 * them, while the caller fills the other. Chunks have half the bytes then, and there are twice as many.
 *
 * With `sets`, for processes that merge only a part of the order (sorted_units.h), what would be one chunk is one for
 * each set of the split, without documents of the other sets; and the keys of its documents follow each chunk, so that
 * the order can be looked through without the records.
 */
#ifndef TOKMAP_SHUFFLE_SHUFFLE_CHUNKS_H
#define TOKMAP_SHUFFLE_SHUFFLE_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "encode/split.h"

/*
 * A document on its way through the shuffle: its place in the shuffled order, and its bytes in
 * memory and in temporary files.
 *
 * The *key* of a document is order_key("document", seed, input number as 8 bytes, position): see ORDER.md, which has
 * the definition and an example. Documents are sorted by their keys as numbers of 128 bits (high * 2^64 + low), and
 * those with equal keys, of which there are practically none, by input and position. So the order is a function of the
 * seed and of where each document is in the inputs, and not of the documents that are shuffled with it.
 *
 * A *record* is a head and a payload: the tokens, the mask (bit i mod 8 of byte i / 8), for each column the length of
 * its value as 8 bytes, and then the values; zeros up to a multiple of 8 bytes follow. The payload of a long document
 * is in another file, and its record has where and what hash it has. Temporary files have no stable format.
 *
 * All functions are pure.
 */

struct shuffle_place {
    uint64_t high, low; /* of the key */
    uint64_t input, position;
};

struct shuffle_place shuffle_place_of(uint64_t seed, uint64_t input, uint64_t position);

/* Returns true if a document at `a` precedes one at `b`. */
static inline bool shuffle_precedes(const struct shuffle_place *a, const struct shuffle_place *b)
{
    if (a->high != b->high)
        return a->high < b->high;
    if (a->low != b->low)
        return a->low < b->low;
    return a->input != b->input ? a->input < b->input : a->position < b->position;
}

struct shuffle_head {
    uint64_t hash;  /* XXH3-64 of the rest of the record */
    uint32_t bytes; /* of the record, a multiple of 8 */
    uint32_t set;   /* of the split; and SHUFFLE_LONG */
    uint64_t input, position, record;
    uint64_t text_bytes;
    uint64_t tokens;
};
_Static_assert(sizeof(struct shuffle_head) == 56, "a head has no padding");

#define SHUFFLE_LONG ((uint32_t)1 << 31) /* the payload is a struct shuffle_long */

/* Place of the payload of a long document in the file of long documents. */
struct shuffle_long {
    uint64_t offset, bytes;
    uint64_t hash; /* XXH3-64 of the payload, without zeros after it */
};

/* Stores the hash of a record that is complete. record: aligned for uint64_t. */
void shuffle_record_seal(uint8_t *record);
/* Returns true if the hash is that of the record; head->bytes of it are there. */
bool shuffle_record_sound(const uint8_t *record, const struct shuffle_head *head);

/* Cuts a payload of `bytes` bytes into its parts; returns false if it has another length than its parts. lengths: of
 * the values, 8 bytes each, at any alignment; each of them is checked. */
struct shuffle_payload {
    const uint8_t *tokens, *mask, *lengths, *values;
};
bool shuffle_payload_cut(const uint8_t *payload, uint64_t bytes, uint64_t tokens, uint32_t width, bool mask,
                         uint32_t columns, struct shuffle_payload *cut);

/* Bytes of the tokens and the mask; false if they are more than 2^62. */
bool shuffle_payload_bytes(uint64_t tokens, uint32_t width, bool mask, uint64_t *bytes);

#define SHUFFLE_RECORD_MOST ((uint64_t)1 << 20) /* bytes of a record */

/* A chunk in a file: records in their order, from `begin` up to `end`. It is stored as it is, with fd 0. */
struct shuffle_chunk {
    uint32_t file; /* its number */
    int fd;
    uint64_t begin, end;
    /* With shuffle_chunks.sets: the set of all documents, how many there are, their tokens, and the hash of their
     * keys (shuffle_keys_hash()), which begin at `end`. Else 0. */
    uint64_t set, keys, tokens, keys_hash;
};

/* Key of a document, which gives its place in the order, and the end of its record. */
struct shuffle_key {
    uint64_t high, position;
    uint32_t input, bytes; /* bytes: of the record */
    uint64_t tokens;
};
_Static_assert(sizeof(struct shuffle_key) == 32, "a key has no padding");

/* Returns where the next chunk begins in the file. */
static inline uint64_t shuffle_chunk_after(const struct shuffle_chunk *chunk)
{
    return chunk->end + chunk->keys * sizeof(struct shuffle_key);
}

/* Returns the hash of the keys of a chunk up to here: `before` is the hash of the keys before these, or 0.
 * So a reader of the keys that continues in another process has to save one number. */
uint64_t shuffle_keys_hash(uint64_t before, const struct shuffle_key *keys, uint64_t count);

/* Place of a record of the chunk in memory. Sorted by it, and in the one case in 2^64 in which that does not suffice,
 * by the rest of its place. */
struct shuffle_entry {
    uint64_t high; /* of the key */
    uint64_t at;   /* in `bytes` */
};

/* The chunk that is being written, by the caller's thread or by its own. */
struct shuffle_writing {
    struct shuffle_chunks *chunks;
    struct os_thread *thread; /* NULL: the caller's */
    struct shuffle_entry *entries, *scratch;
    uint64_t count; /* of the entries; 0: no chunk is being written */
    struct shuffle_chunk made[SPLIT_SETS_MOST];
    uint32_t made_count;
    enum tokmap_status status;
    struct tokmap_error error;
};

/* One struct for writing and for reading, since a merge in the same process continues with the chunks in memory. */
struct shuffle_chunks {
    uint64_t seed;
    const char *folder; /* of the files; not owned */
    /* Opens file `number`, which is new and empty. NULL: the files have no names. */
    enum tokmap_status (*open)(void *self, uint32_t number, int *fd, struct tokmap_error *error);
    void *self;
    bool own_thread;                   /* may be set after shuffle_chunks_init() */
    uint32_t sets;                     /* also: each chunk is of one set, and has keys; 0: no chunk has */
    uint64_t chunk_bytes, record_most; /* record_most: of those that this process adds; read ones may be longer */
    uint8_t *bytes;
    /* The part of the memory that is being filled: records from `begin` up to `used`, entries down from `end`. */
    uint64_t begin, end, used, entries;
    uint32_t *counts; /* of the sort */
    struct shuffle_writing writing;
    struct shuffle_chunk *chunks;
    uint64_t chunk_count, chunk_capacity;
    int fd; /* of the current file, -1 before the first chunk */
    uint32_t files;
    uint64_t file_bytes; /* of the current file; not while its own thread writes to it */
    /* For a merge of files that are not all open: gives file `number`, until the next call. NULL: chunks have theirs.
     */
    enum tokmap_status (*reopen)(void *self, uint32_t number, int *fd, struct tokmap_error *error);
    /* The error of a file that has other bytes than were written. NULL: shuffle_file_damaged(). */
    enum tokmap_status (*damaged)(void *self, uint32_t number, uint64_t offset, struct tokmap_error *error);
};

#define SHUFFLE_CHUNK_LEAST ((uint64_t)4096)

/* chunk_bytes: SHUFFLE_CHUNK_LEAST to 2^40, a multiple of 8. A record may have an eighth of it, and at most 1 MiB.
 * Statuses: OK, ERROR_MEMORY. shuffle_chunks_free() may follow a failure. */
enum tokmap_status shuffle_chunks_init(struct shuffle_chunks *chunks, uint64_t seed, uint64_t chunk_bytes,
                                       const char *folder, struct tokmap_error *error);
void shuffle_chunks_free(struct shuffle_chunks *chunks);

/* Returns aligned memory for a record of `bytes` bytes, a multiple of 8 and at most chunks->record_most. To be filled
 * and passed to shuffle_chunks_add() before the next call. NULL: *error has the reason why this or an earlier chunk
 * could not be written. */
uint8_t *shuffle_chunks_room(struct shuffle_chunks *chunks, uint32_t bytes, struct tokmap_error *error);
/* Adds the record that is in the memory: its head is complete but for the hash. */
void shuffle_chunks_add(struct shuffle_chunks *chunks, uint8_t *record);

/* Writes the chunk in memory, if it has records, and waits for the thread. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status shuffle_chunks_write(struct shuffle_chunks *chunks, struct tokmap_error *error);

/* Adds a chunk that another process has written; it has a descriptor. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status shuffle_chunks_take(struct shuffle_chunks *chunks, const struct shuffle_chunk *chunk,
                                       struct tokmap_error *error);

/* Ends the pass: if chunks were written, writes the last one, too, and frees the memory. Else sorts the records, which
 * shuffle_chunks_record() returns in their order. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status shuffle_chunks_end(struct shuffle_chunks *chunks, struct tokmap_error *error);
const uint8_t *shuffle_chunks_record(const struct shuffle_chunks *chunks, uint64_t number);

/* Creates a file without a name. Statuses: OK, ERROR_IO. */
enum tokmap_status shuffle_file_unnamed(const char *folder, int *fd, struct tokmap_error *error);
/* Writes bytes at the end of a file. Statuses: OK, ERROR_IO. */
enum tokmap_status shuffle_file_append(const char *folder, int fd, uint64_t *file_bytes, const void *bytes,
                                       uint64_t count, struct tokmap_error *error);
/* Returns the status of a file that cannot be written. */
enum tokmap_status shuffle_file_failed(const char *folder, int system, struct tokmap_error *error);

#endif
